#!/bin/sh
# After files of the package have come or gone. A service that runs goes on with the program
# that it has until it is restarted.
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
