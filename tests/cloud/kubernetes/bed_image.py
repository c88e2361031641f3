"""bed_image.py FOLDER NAME:TAG FILE [ENTRYPOINT] - an image of one layer, the folder, as an OCI archive for `ctr images import`."""
import gzip
import hashlib
import io
import json
import sys
import tarfile

OCI = "application/vnd.oci.image."


def add(archive: tarfile.TarFile, path: str, content: bytes) -> None:
    entry = tarfile.TarInfo(path)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def add_blob(archive: tarfile.TarFile, kind: str, content: bytes) -> dict[str, object]:
    digest = hashlib.sha256(content).hexdigest()
    add(archive, f"blobs/sha256/{digest}", content)
    return {"mediaType": OCI + kind, "digest": f"sha256:{digest}", "size": len(content)}


def write(folder: str, name: str, file: str, entrypoint: list[str]) -> None:
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as archive:
        archive.add(folder, arcname=".")
    config = {"architecture": "amd64", "os": "linux", "config": {"Entrypoint": entrypoint or None},
              "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer.getvalue()).hexdigest()]}}
    with tarfile.open(file, "w") as archive:
        layers = [add_blob(archive, "layer.v1.tar+gzip", gzip.compress(layer.getvalue(), 1))]
        parts = {"schemaVersion": 2, "mediaType": OCI + "manifest.v1+json", "config": add_blob(archive, "config.v1+json", json.dumps(config).encode()),
                 "layers": layers}
        manifest = add_blob(archive, "manifest.v1+json", json.dumps(parts).encode())
        manifest["annotations"] = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.split(":")[-1]}
        add(archive, "index.json", json.dumps({"schemaVersion": 2, "manifests": [manifest]}).encode())
        add(archive, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')


write(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
