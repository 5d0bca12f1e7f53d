//go:build linux

package process

import (
	"sync"

	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
)

// There is something to say once of each process or file, of which whoever runs programs can have any number: so there is
// a bound for each user.

const (
	// maxUserLines of each kind are logged of a user's processes and files.
	maxUserLines = 64
	// maxLineUsers have lines of their own, the first ones, for good. All others share as many as one has.
	maxLineUsers = 64
)

// lineKind is what a line is about: whoever has many of one kind may have others to be told of.
type lineKind uint8

const (
	lineContext     lineKind = iota // a process context
	lineEnvironment                 // the resource in an environment
	lineSource                      // a label source
	lineRuntime                     // a language runtime
	lineRuntimes                    // several of them

	numLineKinds = iota
)

// lines counts what was logged.
type lines struct {
	mu     sync.Mutex
	users  map[uint32]*[numLineKinds]int
	others [numLineKinds]int
}

// room reports whether a user may have another line of a kind. If not, what is said once of a file is left for others.
func (l *lines) room(uid uint32, kind lineKind) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.users[uid]
	if of == nil {
		if len(l.users) < maxLineUsers {
			return true
		}
		of = &l.others
	}
	return of[kind] < maxUserLines
}

// next returns the number of a user's next line of a kind, from 1 on, or 0 if there were enough. shared: the user has
// none of his own.
func (l *lines) next(uid uint32, kind lineKind) (number int, shared bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.users[uid]
	switch {
	case of != nil:
	case len(l.users) >= maxLineUsers:
		of, shared = &l.others, true
	default:
		if l.users == nil {
			l.users = map[uint32]*[numLineKinds]int{}
		}
		of = &[numLineKinds]int{}
		l.users[uid] = of
	}
	if of[kind] >= maxUserLines {
		return 0, shared
	}
	of[kind]++
	return of[kind], shared
}

// say logs something of an owner's processes or files, unless enough of its kind was.
func (r *reader) say(of executable.Owner, kind lineKind, what string, fields ...zap.Field) {
	number, shared := r.lines.next(of.UID, kind)
	switch number {
	case 0:
		return
	case maxUserLines:
		what += " Further ones of this user are not logged."
	}
	r.log.Info(what, append(fields,
		zap.Uint32("uid", of.UID), zap.Bool("shared_user", shared), zap.String("container", of.Container))...)
}
