// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/converge/internal/inject"
)

// entry is a line of a timeline.
type entry struct {
	at time.Duration
	// who acts: user, reconcile 3, process, watch, gc, another client, or the name of an actor.
	who  string
	what string
	// cache is the version that a read from a cache got, and the current version of the kind.
	cache  string
	result string
	mark   mark
	// weight is the display priority.
	weight int

	// The following fields are for drawings: the sender and the receiver, and the effect on the process.
	from, to place
	turn     turn
	news     news
	fault    inject.Fault
	failed   bool
	// program is the version that a process starts with, in an upgrade.
	program string
	// process is the number of the process, and version that of the API server, after it.
	process int
	version int64

	facts
}

// facts describe a request of the process, or the end of a reconcile, for hints.
type facts struct {
	// act is the action of a request, and object what it is about, as findings name it.
	act, object string
	// kind is the kind of the object, and position the version of the cache that was read.
	kind     schema.GroupVersionKind
	position int64
	// effect is set for a request that has changed something, also if it failed.
	effect bool
	// unowned is set for an object without an owner that is created.
	unowned bool
	// reason is that of the error of the API server, and items the number of items of a list.
	reason metav1.StatusReason
	items  int
	// retried is set for the end of a reconcile whose request is queued again, and after is the delay if it polls.
	retried bool
	after   time.Duration
}

// arrival is the arrival of an event at a cache, after a number of entries.
type arrival struct {
	entry

	after int
}

// place is a lane of the drawing. A cache has the name of its kind. The zero place is none.
type place struct {
	role role
	name string
}

// role is the kind of a place.
type role int

const (
	outsideRole role = iota + 1
	processRole
	cacheRole
	serverRole
	otherRole
)

var (
	theOutside = place{role: outsideRole}
	theProcess = place{role: processRole}
	theServer  = place{role: serverRole}
)

func cacheOf(kind schema.GroupVersionKind) place { return place{cacheRole, kind.GroupKind().String()} }
func other(who string) place                     { return place{otherRole, who} }

// turn is the effect of an entry on a process, or on a reconcile.
type turn int

const (
	beginning turn = iota + 1 // of a reconcile
	ending                    // of a reconcile
	dying                     // of the process
	starting                  // of the next process
)

// news is the effect of an entry on the watch of a cache.
type news int

const (
	arriving   news = iota + 1 // an event
	holding                    // of events
	catchingUp                 // with what was held
	repeating                  // of all that the cache has
)

// mark highlights an entry.
type mark string

const (
	faultMark mark = "fault"
	staleMark mark = "stale"
	harmMark  mark = "violation"
)

// The weights of entries.
const (
	aside   = iota // reads, and successful ends
	notable        // errors, processes
	write          // effects
	crucial        // faults and their consequences
)
