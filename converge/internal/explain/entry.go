// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/converge/internal/inject"
)

// Entry is a line of a timeline.
type Entry struct {
	At time.Duration
	// Who acts: user, reconcile 3, process, watch, gc, another client, or the name of an actor.
	Who  string
	What string
	// Cache is the version that a read from a cache got, and the current version of the kind.
	Cache  string
	Result string
	Mark   Mark
	// Weight is the display priority.
	Weight int

	// The following fields are for drawings: the sender and the receiver, and the effect on the process.
	From, To Place
	Turn     Turn
	News     News
	Fault    inject.Fault
	Failed   bool
	// Program is the version that a process starts with, in an upgrade.
	Program string
	// Process is the number of the process, and version the version of the API server after it.
	Process int
	Version int64

	Facts
}

// Facts describe a request of the process, or the end of a reconcile, for hints.
type Facts struct {
	// Act is the action of a request, and object what it is about, as findings name it.
	Act, Object string
	// Kind is the kind of the object, and position the version of the cache that was read.
	Kind     schema.GroupVersionKind
	Position int64
	// Effect is set for a request that has changed something, also if it failed.
	Effect bool
	// Unowned is set for an object without an owner that is created.
	Unowned bool
	// Reason is the reason of the error of the API server, and items the number of items of a list.
	Reason metav1.StatusReason
	Items  int
	// Retried is set for the end of a reconcile whose request is queued again, and after is the delay if it polls.
	Retried bool
	After   time.Duration
}

// Arrival is the arrival of an event at a cache, after a number of entries.
type Arrival struct {
	Entry

	After int
}

// Place is a lane of the drawing. A cache has the name of its kind. The zero place is none.
type Place struct {
	Role Role
	Name string
}

// Role is the kind of a place.
type Role int

// The roles of places, in the order of their lanes.
const (
	OutsideRole Role = iota + 1
	ProcessRole
	CacheRole
	ServerRole
	otherRole
)

// The places that exist once.
var (
	TheOutside = Place{Role: OutsideRole}
	TheProcess = Place{Role: ProcessRole}
	TheServer  = Place{Role: ServerRole}
)

// CacheOf returns the place of the cache of a kind.
func CacheOf(kind schema.GroupVersionKind) Place { return Place{CacheRole, kind.GroupKind().String()} }

// Other returns the place of a user, an actor or another client.
func Other(who string) Place { return Place{otherRole, who} }

// Turn is the effect of an entry on a process, or on a reconcile.
type Turn int

// The turns.
const (
	Beginning Turn = iota + 1 // of a reconcile
	Ending                    // of a reconcile
	Dying                     // of the process
	Starting                  // of the next process
)

// News is the effect of an entry on the watch of a cache.
type News int

// The news.
const (
	Arriving   News = iota + 1 // an event
	Holding                    // of events
	CatchingUp                 // with what was held
	Repeating                  // of all that the cache has
)

// Mark highlights an entry.
type Mark string

// The marks.
const (
	FaultMark Mark = "fault"
	StaleMark Mark = "stale"
	HarmMark  Mark = "violation"
)

// The weights of entries.
const (
	Aside   = iota // reads, and successful ends
	Notable        // errors, processes
	Write          // effects
	Crucial        // faults and their consequences
)
