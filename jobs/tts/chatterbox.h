/* chatterbox.h - how a pod is given Chatterbox and Chatterbox-Turbo, as text. */
#ifndef BURST_JOBS_TTS_CHATTERBOX_H
#define BURST_JOBS_TTS_CHATTERBOX_H

#include "pip.h"

#define CHATTERBOX_PINNED " --pin chatterbox-tts==0.1.7 --pin transformers==5.2.0"

/* The image's torch is kept: the package pins an old one without kernels for today's cards, so it comes without its dependencies,
 * which follow under a constraint; the set-up fails if torch is another one at the end. A watermark needs setuptools below 81. */
#define CHATTERBOX_SETUP(REPOSITORY, FILES)                                                                                                \
	"shared=--system-site-packages\n" PIP_SETUP                                                                                        \
	"torch() { python -c 'import torch; print(torch.__version__)'; }\n"                                                                \
	"before=$(torch 2>/dev/null) || { echo 'this image has no torch: chatterbox needs an image with torch 2.8 or later' >&2; exit 1; }\n" \
	"constraint=$BORROWED/constraint\n"                                                                                                \
	"echo \"torch==$before\" >\"$constraint\"\n"                                                                                     \
	"python -c 'import torchaudio' 2>/dev/null || get \"torchaudio==${before%%+*}\"\n"                                                \
	"get chatterbox-tts==0.1.7 conformer==0.3.2 diffusers==0.29.0 s3tokenizer==0.3.0 resemble-perth==1.0.1\n"                          \
	"pip install -c \"$constraint\" transformers==5.2.0 librosa==0.11.0 omegaconf==2.4.0 safetensors==0.8.0 einops==0.8.2"             \
	" pyloudnorm==0.2.0 soundfile==0.14.0 pillow requests importlib_metadata onnx 'setuptools<81'\n"                                   \
	"[ \"$(torch)\" = \"$before\" ] || { echo \"the packages replaced torch $before by $(torch)\" >&2; exit 1; }\n"                    \
	"python - <<'END_OF_WEIGHTS'\n"                                                                                                    \
	"import hashlib, json, os\n"                                                                                                       \
	"from huggingface_hub import HfApi, snapshot_download\n"                                                                           \
	"folder = os.path.join(os.environ['BURST_ENV'], 'weights')\n"                                                                      \
	"revision = HfApi().model_info('" REPOSITORY "').sha\n"                                                                            \
	"snapshot_download('" REPOSITORY "', revision=revision, local_dir=folder, allow_patterns=[" FILES "])\n"                           \
	"hashes = {}\n"                                                                                                                    \
	"for name in sorted(os.listdir(folder)):\n"                                                                                        \
	"    if os.path.isfile(os.path.join(folder, name)):\n"                                                                             \
	"        with open(os.path.join(folder, name), 'rb') as f:\n"                                                                      \
	"            hashes[name] = hashlib.file_digest(f, 'sha256').hexdigest() if hasattr(hashlib, 'file_digest') else "                 \
	"hashlib.sha256(f.read()).hexdigest()\n"                                                                                           \
	"with open(os.path.join(folder, 'weights.json'), 'w') as f:\n"                                                                     \
	"    json.dump({'revision': revision, 'sha256': hashes}, f)\n"                                                                     \
	"END_OF_WEIGHTS\n"

#define CHATTERBOX_REGULAR_SETUP                                                                                                           \
	CHATTERBOX_SETUP("ResembleAI/chatterbox", "'ve.safetensors', 't3_cfg.safetensors', 's3gen.safetensors', 'tokenizer.json', "      \
						  "'conds.pt'")
#define CHATTERBOX_TURBO_SETUP CHATTERBOX_SETUP("ResembleAI/chatterbox-turbo", "'*.safetensors', '*.json', '*.txt', '*.pt', '*.model'")

#endif
