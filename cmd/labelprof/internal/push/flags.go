// SPDX-License-Identifier: Apache-2.0

package push

import (
	"flag"
	"io"
	"os"
	"strings"
	"time"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/command"
)

// The environment variables with what must not be on a command line.
const (
	envToken = "LABELPROF_PUSH_TOKEN" //nolint:gosec // a name, no token
	envUser  = "LABELPROF_PUSH_USER"
)

// settings are the flags of push.
type settings struct {
	server, tenant string
	caFile         string
	service        string
	omit           command.List
	timeout        time.Duration
	patience       time.Duration
	memory         command.MemoryFlag
	files          []string
}

func parseFlags(args []string, stdout, stderr io.Writer) (*settings, error) {
	flags := flag.NewFlagSet("labelprof push", flag.ContinueOnError)
	f := &settings{}
	flags.StringVar(&f.server, "server", "http://127.0.0.1:4040", "`URL` of Pyroscope; a token for it comes from "+envToken+", and "+envUser+" makes it the password of this user")
	flags.StringVar(&f.tenant, "tenant", "", "tenant `id`, where Pyroscope has several (X-Scope-OrgID)")
	flags.StringVar(&f.caFile, "ca-file", "", "PEM `file` with the certificates that https is checked against (default: the system's)")
	flags.StringVar(&f.service, "service", "", "`name` for samples without service.name (default: unknown_service, with the executable's name if that is known)")
	flags.Var(&f.omit, "omit", "`keys` of labels that are not sent, separated by commas: each label set is a series")
	flags.DurationVar(&f.timeout, "timeout", 30*time.Second, "for each request")
	flags.DurationVar(&f.patience, "patience", time.Minute, "try a request again for so long while the server is busy or not there; one that asks to wait longer ends it at once")
	f.memory.Register(flags, 1024, "`MiB` that reading and decoding a file may take")
	var err error
	f.files, err = command.Parse(&command.Help{
		Name: "push", Synopsis: []string{"[flags] FILE..."},
		About: `
Sends files of OTLP profiles or pprof to Grafana Pyroscope (POST /ingest), a service at a time,
with labels. Of a file that is cut, or still being written, all requests before that are sent.`,
	}, flags, args, stdout, stderr)
	if err != nil {
		return nil, err
	}
	switch {
	case !f.memory.Valid():
		return nil, command.UsageError(stderr, "labelprof push: --max-memory must be from 1 to %d", command.MaxMemoryMiB)
	case f.timeout <= 0 || f.patience < 0:
		return nil, command.UsageError(stderr, "labelprof push: --timeout above 0, --patience not below 0")
	case len(f.files) == 0:
		return nil, command.UsageError(stderr, "labelprof push: no files given")
	}
	server, err := parseServer(f.server)
	switch {
	case err != nil:
		return nil, command.UsageError(stderr, "labelprof push: %v", err)
	case f.caFile != "" && server.Scheme != "https":
		return nil, command.UsageError(stderr, "labelprof push: --ca-file is of use with https only")
	case strings.ContainsAny(f.tenant, "\r\n"):
		return nil, command.UsageError(stderr, "labelprof push: --tenant is one line")
	}
	return f, nil
}

// secret is who sends, for the header. It has no text, so that no message can have it.
type secret struct{ user, token string }

// String implements fmt.Stringer.
func (secret) String() string { return "[secret]" }

// GoString implements fmt.GoStringer.
func (secret) GoString() string { return "[secret]" }

func secretOfEnvironment() secret {
	return secret{user: os.Getenv(envUser), token: os.Getenv(envToken)}
}
