// SPDX-License-Identifier: Apache-2.0

package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
)

//go:embed dist/index.html dist/page.js dist/page.css dist/icon.svg dist/LICENSES.txt
var dist embed.FS

// asset is a file of the page.
type asset struct {
	kind string // MIME type
	tag  string // changes with the content
	data []byte
}

// assets returns the files of the page by path.
func assets() (map[string]asset, error) {
	all := map[string]asset{}
	for url, file := range map[string]struct{ name, kind string }{
		"/":             {"index.html", "text/html; charset=utf-8"},
		"/page.js":      {"page.js", "text/javascript; charset=utf-8"},
		"/page.css":     {"page.css", "text/css; charset=utf-8"},
		"/icon.svg":     {"icon.svg", "image/svg+xml"},
		"/LICENSES.txt": {"LICENSES.txt", "text/plain; charset=utf-8"},
	} {
		data, err := fs.ReadFile(dist, "dist/"+file.name)
		if err != nil {
			return nil, fmt.Errorf("read the page: %w", err)
		}
		sum := sha256.Sum256(data)
		all[url] = asset{kind: file.kind, tag: `"` + hex.EncodeToString(sum[:8]) + `"`, data: data}
	}
	return all, nil
}

// serve answers with the file, or says that the browser has it.
func (a asset) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("ETag", a.tag)
	h.Set("Cache-Control", "no-cache")
	if r.Header.Get("If-None-Match") == a.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(a.data) // a browser that went away
}
