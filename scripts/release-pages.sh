#!/usr/bin/env bash
# Copies into a new folder the pages and what they link to, laid out as here. Links to sources,
# which are for who works on them, lead to those of the version.
#
#   scripts/release-pages.sh VERSION FOLDER
set -euo pipefail
to=$(realpath -m "$2")
cd "$(dirname "$0")/.."

mkdir -p "$to"
cp -r --parents README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE builder-config.yaml docs examples deploy \
	receiver/customlabelsreceiver/{README.md,documentation.md,config.schema.json,metadata.yaml} internal/bpf/LICENSE* "$to"
find "$to" -type f -exec chmod 0644 {} +
sources='(internal/[^L)]*/|test/|testdata/|tools/|go\.mod\b|receiver/[a-z/]*\.go\b)'
find "$to" -name '*.md' -exec sed -i -E \
	"s#\]\((\.\./)*$sources#](https://github.com/customlabels/otelcol-customlabels/blob/v$1/\2#g" {} +
