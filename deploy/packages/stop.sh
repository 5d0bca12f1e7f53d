#!/bin/sh
# Before the package is removed; not when another version takes its place.
[ -d /run/systemd/system ] || exit 0
case $1 in
remove | 0) systemctl disable --now otelcol-customlabels.service ;;
esac
