# cloud_modal_lib.sh - what the tests of the stand-in for Modal share.
# shellcheck shell=bash

GPU='{"count":1,"gpuType":"L4"}'
RECIPE='"FROM debian:12-slim","RUN apt-get install -y openssh-server rsync","RUN mkdir -p /run/sshd /root/.ssh"'
SSHD='set -e; umask 077; mkdir -p /root/.ssh; echo "$HOST_KEY" | base64 -d >/etc/ssh/host; echo "$AUTH_KEY" | base64 -d >/root/.ssh/authorized_keys; exec /usr/sbin/sshd -D -e -o HostKey=/etc/ssh/host'

begin() { # starts one, or skips the test
	local why
	why=$(md_can) || { skip "$why"; return 1; }
	md_start ${TLS:+--tls}
}
over() {
	md_invariants
	md_stop
}
keys() {
	ssh-keygen -q -t ed25519 -N '' -C test -f id
	ssh-keygen -q -t ed25519 -N '' -C test -f host
	echo "pod $(cut -d' ' -f1,2 host.pub)" >known
}
want() { # want STATUS WHAT
	[ "$GRPC" = "$1" ] || complain "$2: got $GRPC, want $1: $(head -c 300 reply.json)"
}
refuse() { # refuse STATUS TEXT METHOD MESSAGE [MORE]
	md_call "$3" "$4" ${5+"$5"}
	want "$1" "$3 $4"
	jq -r .message reply.json | grep -qF -- "$2" || complain "$3 does not say \"$2\" but $(jq -r .message reply.json)"
}
msg() { jq -r ".messages[0]$1 // empty" reply.json; }

# account: app, image, volume and secret in $APP, $IMAGE, $VOLUME, $SECRET
account() {
	md_call AppGetOrCreate '{"appName":"burst","objectCreationType":1}'
	want 0 AppGetOrCreate
	APP=$(msg .appId)
	md_call VolumeGetOrCreate '{"deploymentName":"cache","objectCreationType":1,"version":2}'
	want 0 VolumeGetOrCreate
	VOLUME=$(msg .volumeId)
	md_call ImageGetOrCreate "{\"appId\":\"$APP\",\"builderVersion\":\"2025.06\",\"image\":{\"dockerfileCommands\":[$RECIPE]}}"
	want 0 ImageGetOrCreate
	IMAGE=$(msg .imageId)
	md_call ImageJoinStreaming "{\"imageId\":\"$IMAGE\",\"timeout\":30}"
	want 0 ImageJoinStreaming
	[ -e id ] || keys
	md_call SecretGetOrCreate "{\"objectCreationType\":5,\"envDict\":{\"HOST_KEY\":\"$(base64 -w0 host)\",\"AUTH_KEY\":\"$(base64 -w0 id.pub)\"}}"
	want 0 SecretGetOrCreate
	SECRET=$(msg .secretId)
}
# create NAME COMMAND [MEMBERS OF THE DEFINITION [MORE]]: id in $ID
create() {
	md_call SandboxCreate "$(jq -nc --arg app "$APP" --arg image "$IMAGE" --arg secret "$SECRET" --arg volume "$VOLUME" --arg name "$1" --arg command "$2" \
		--argjson gpu "$GPU" --argjson more "{${3:-}}" '{appId:$app, tags:[{tagName:"burst",tagValue:"run-7"}], definition:({entrypointArgs:["/bin/sh","-c",$command],
		imageId:$image, secretIds:[$secret], timeoutSecs:600, name:$name, networkAccess:{networkAccessType:1}, resources:{memoryMb:2048,milliCpu:2000,gpuConfig:$gpu},
		openPorts:{ports:[{port:22,unencrypted:true}]}, volumeMounts:[{volumeId:$volume,mountPath:"/cache",allowBackgroundCommits:true}]} + $more)}')" ${4+"$4"}
	ID=$(msg .sandboxId)
}
