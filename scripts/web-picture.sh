#!/usr/bin/env bash
# Makes docs/flamegraph.png: the page of `labelprof serve` in Chromium, with samples of a
# program that works for several tenants, taken by the built collector. As root.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly seconds=600   # that the program runs; it ends with this script
readonly samples=3000  # of it, before the picture is taken
readonly timeout=60    # seconds until collector and page are there
readonly most=200000   # bytes of the picture
readonly to=docs/flamegraph.png

if ((EUID != 0)); then
	echo "web-picture: it samples, which needs root" >&2
	exit 1
fi

work=$(mktemp -d)
declare -a started=()

# shellcheck disable=SC2317 # the trap calls it
stop() {
	local status=$? pid
	trap - EXIT
	for pid in "${started[@]}"; do
		kill -TERM "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	rm -rf "$work"
	exit "$status"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# line LOG TEXT: the rest of the line of LOG that has TEXT, once there is one.
line() {
	local deadline=$((SECONDS + timeout))
	until grep -q "$2" "$1"; do
		if ((SECONDS > deadline)); then
			echo "web-picture: no line \"$2\" in:" >&2
			tail -n 5 "$1" >&2
			return 1
		fi
		sleep 0.1
	done
	sed -n "s/.*$2//p" "$1" | head -n 1
}

# The picture shows the name of the program.
cp build/writers/writer-v1-exe "$work/shop"
"$work/shop" shares --threads 2 --seconds "$seconds" >"$work/shop.log" 2>&1 &
started+=("$!")
pid=$!

bin/labelprof serve --listen 127.0.0.1:0 --web 127.0.0.1:0 --by tenant >"$work/labelprof.out" 2>"$work/labelprof.log" &
started+=("$!")
url=$(line "$work/labelprof.log" 'flame graphs by label: ')
address=$(line "$work/labelprof.log" 'receiving OTLP profiles at ')

cat >"$work/changes.yaml" <<-END
	receivers::custom_labels: {samples_per_second: 997, targets: {include: [{pid: $pid}]}}
END
OTLP_ENDPOINT=$address build/otelcol-customlabels --config examples/quickstart.yaml --config "$work/changes.yaml" \
	--feature-gates=service.profilesSupport >"$work/collector.log" 2>&1 &
started+=("$!")
line "$work/collector.log" 'Everything is ready' >/dev/null

(cd build/web-browser && exec node picture.mjs "$url" "$samples" "$work/flamegraph.png")
if (($(stat -c %s "$work/flamegraph.png") >= most)); then
	echo "web-picture: the picture has $(stat -c %s "$work/flamegraph.png") bytes, not less than $most" >&2
	exit 1
fi
cp "$work/flamegraph.png" "$to"
echo "$to: $(stat -c %s "$to") bytes, look at it before it is committed"
