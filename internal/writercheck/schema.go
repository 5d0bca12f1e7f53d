package writercheck

import (
	"strconv"

	"github.com/customlabels/otelcol-customlabels/internal/processctx"
)

func isTLS(schema string) bool { return processctx.Schema(schema).TLS() }

func isNodeJS(schema string) bool { return processctx.Schema(schema).NodeJS() }

func quotedOrNone(schema string) string {
	if schema == "" {
		return "none published"
	}
	return strconv.Quote(schema)
}
