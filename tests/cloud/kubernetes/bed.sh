#!/bin/bash
# bed.sh up|down FOLDER PROGRAMS - a real Kubernetes of one node on this machine's loopback: etcd, API server, controllers, scheduler,
# kubelet, containerd, runc. PROGRAMS: the folder that bed_programs.sh filled. The node claims two GPUs of the kind L40S.
#
# up waits until it serves and leaves FOLDER/admin.kubeconfig and FOLDER/weak.kubeconfig, whose user has no right; both have the context
# "bed". A node that is silent for 20 s is "Unknown" (40 s elsewhere), so that a test need not wait. All of it lives in a pid and a mount
# namespace of its own, so that `down`, which kills its first process, ends every daemon and every container. Its ports and control groups
# are the machine's, so there is one at a time: `up` waits up to 10 minutes for the end of another one. PORT: the first of six. Needs root.
set -eu
verb=$1 dir=$2 programs=$3 port=${PORT:-17443}
export PATH=$programs/bin:$PATH:/usr/sbin:/usr/lib/cni

down() {
	[ ! -s "$dir/pid" ] || kill -9 "$(cat "$dir/pid")" 2>/dev/null || :
	local group left
	for _ in $(seq 50); do
		left=
		for group in /sys/fs/cgroup/*/burst-bed /sys/fs/cgroup/burst-bed; do
			[ ! -d "$group" ] || { find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || left=1; }
		done
		[ -n "$left" ] || return 0
		sleep 0.2
	done
}
if [ "$verb" = down ]; then
	down
	exit 0
fi
if [ "$verb" = up ]; then
	mkdir -p "$dir"
	exec 9>/run/lock/burst-kubernetes-bed # its first process inherits it
	flock -w 600 9 || { echo "another bed runs on this machine" >&2; exit 1; }
	setsid unshare --mount --pid --fork --mount-proc --propagation private --kill-child=KILL bash "$0" inside "$dir" "$programs" >"$dir/out" 2>&1 </dev/null &
	echo $! >"$dir/pid"
	for _ in $(seq 600); do
		[ ! -e "$dir/ready" ] || exit 0
		kill -0 "$(cat "$dir/pid")" 2>/dev/null || break
		sleep 0.2
	done
	tail -n 3 "$dir"/out "$dir"/*.log >&2
	down
	exit 1
fi

# ---- inside ----

cd "$dir"
mount -t tmpfs tmpfs /run
mkdir -p /run/netns cni

certificate() { # NAME SUBJECT
	openssl req -newkey rsa:2048 -nodes -subj "$2" -keyout "$1.key" -out "$1.csr" 2>/dev/null
	openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -out "$1.crt" 2>/dev/null \
		-extfile <(printf 'subjectAltName=IP:127.0.0.1,DNS:localhost\nextendedKeyUsage=serverAuth,clientAuth\n')
}
kubeconfig() { # NAME USER
	cat >"$1.kubeconfig" <<-END
		apiVersion: v1
		kind: Config
		clusters: [{name: bed, cluster: {server: "https://127.0.0.1:$port", certificate-authority: $dir/ca.crt}}]
		users: [{name: user, user: $2}]
		contexts: [{name: bed, context: {cluster: bed, user: user}}]
		current-context: bed
	END
}
openssl genrsa -out accounts.key 2048 2>/dev/null
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=bed -keyout ca.key -out ca.crt 2>/dev/null
certificate api /CN=kube-apiserver
certificate caller /O=system:masters/CN=apiserver-kubelet
certificate kubelet /O=system:nodes/CN=system:node:localhost
certificate controllers /CN=system:kube-controller-manager
certificate scheduler /CN=system:kube-scheduler
certificate admin /O=system:masters/CN=admin
for name in kubelet controllers scheduler admin; do kubeconfig $name "{client-certificate: $dir/$name.crt, client-key: $dir/$name.key}"; done
kubeconfig weak '{token: weak-token}'
echo 'weak-token,weak,2,""' >tokens.csv

etcd --data-dir "$dir/etcd" --unsafe-no-fsync --listen-client-urls "http://127.0.0.1:$((port + 1))" --advertise-client-urls "http://127.0.0.1:$((port + 1))" \
	--listen-peer-urls "http://127.0.0.1:$((port + 2))" --initial-advertise-peer-urls "http://127.0.0.1:$((port + 2))" \
	--initial-cluster "default=http://127.0.0.1:$((port + 2))" >etcd.log 2>&1 &
# a test kills it: it comes back at once
while :; do
	kube-apiserver --etcd-servers="http://127.0.0.1:$((port + 1))" --bind-address=127.0.0.1 --secure-port="$port" --advertise-address=127.0.0.1 \
		--endpoint-reconciler-type=none --tls-cert-file=api.crt --tls-private-key-file=api.key --client-ca-file=ca.crt --token-auth-file=tokens.csv \
		--authorization-mode=Node,RBAC --service-cluster-ip-range=10.0.0.0/24 --service-account-issuer=https://bed.test \
		--service-account-signing-key-file=accounts.key --service-account-key-file=accounts.key \
		--kubelet-client-certificate=caller.crt --kubelet-client-key=caller.key --kubelet-certificate-authority=ca.crt >>api.log 2>&1 || sleep 0.2
done &

cat >cni/10-bed.conflist <<END
{"cniVersion":"0.4.0","name":"bed","plugins":[{"type":"ptp","ipam":{"type":"host-local","subnet":"10.89.0.0/24","dataDir":"$dir/ipam"}}]}
END
cat >containerd.toml <<END
version = 2
root = "$dir/containerd/root"
state = "$dir/containerd/state"
[grpc]
address = "$dir/containerd.sock"
[ttrpc]
address = "$dir/containerd.ttrpc"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "bed.test/pause:1"
restrict_oom_score_adj = true
disable_apparmor = true
disable_tcp_service = true
stream_server_address = "127.0.0.1"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "$dir/cni"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
END
containerd -c containerd.toml >containerd.log 2>&1 &
until ctr -a "$dir/containerd.sock" version >/dev/null 2>&1; do sleep 0.1; done
for image in "$programs"/images/{pause,debian}.tar; do ctr -a "$dir/containerd.sock" -n k8s.io images import "$image"; done
until curl -s -m 2 --cacert ca.crt --cert admin.crt --key admin.key "https://127.0.0.1:$port/readyz" | grep -q ok; do sleep 0.1; done
kube-controller-manager --kubeconfig=controllers.kubeconfig --bind-address=127.0.0.1 --secure-port=$((port + 3)) --leader-elect=false \
	--service-account-private-key-file=accounts.key --root-ca-file=ca.crt --use-service-account-credentials=true \
	--node-monitor-grace-period=20s --node-monitor-period=1s >controllers.log 2>&1 &
kube-scheduler --kubeconfig=scheduler.kubeconfig --bind-address=127.0.0.1 --secure-port=$((port + 4)) --leader-elect=false >scheduler.log 2>&1 &
cat >kubelet.yaml <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 127.0.0.1
port: $((port + 5))
readOnlyPort: 0
healthzPort: 0
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $dir/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $dir/kubelet.crt
tlsPrivateKeyFile: $dir/kubelet.key
cgroupDriver: cgroupfs
cgroupRoot: /burst-bed
enforceNodeAllocatable: []
failSwapOn: false
failCgroupV1: false
makeIPTablesUtilChains: false
localStorageCapacityIsolation: false
containerRuntimeEndpoint: unix://$dir/containerd.sock
evictionHard: {memory.available: 50Mi, nodefs.available: 1%, imagefs.available: 1%}
nodeLeaseDurationSeconds: 12
nodeStatusUpdateFrequency: 3s
imageGCHighThresholdPercent: 99
imageGCLowThresholdPercent: 98
volumePluginDir: $dir/plugins
END
for hierarchy in /sys/fs/cgroup/*/; do mkdir -p "$hierarchy/burst-bed" 2>/dev/null || :; done
for file in cpus mems; do # a new group of this hierarchy has neither
	[ ! -e /sys/fs/cgroup/cpuset/cpuset.$file ] || cat /sys/fs/cgroup/cpuset/cpuset.$file >/sys/fs/cgroup/cpuset/burst-bed/cpuset.$file
done
# its name is one that the API server can look up
kubelet --config=kubelet.yaml --kubeconfig=kubelet.kubeconfig --root-dir="$dir/kubelet" --hostname-override=localhost --cert-dir="$dir/kubelet-pki" >kubelet.log 2>&1 &
export KUBECONFIG=$dir/admin.kubeconfig
k() { kubectl --context=bed "$@"; }
until [ "$(k get node localhost -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}' 2>/dev/null)" = True ]; do sleep 0.2; done
for list in capacity allocatable; do
	k patch node localhost --subresource=status --type=json -p "[{\"op\":\"add\",\"path\":\"/status/$list/nvidia.com~1gpu\",\"value\":\"2\"}]"
done
k label node localhost nvidia.com/gpu.product=NVIDIA-L40S nvidia.com/gpu.memory=46068
until [ -z "$(k get node localhost -o 'jsonpath={.spec.taints}')" ] && k get serviceaccount default >/dev/null 2>&1; do sleep 0.2; done
touch ready
wait
