// SPDX-License-Identifier: Apache-2.0

package inject

import "slices"

// Row describes a fault. The search, the pages and the table of the guide read it. The injection points decide where
// exactly a fault is injected: the calls of injector.at in package sim.
type Row struct {
	fault Fault
	// Meaning describes the fault in the guide and on pages.
	Meaning string
	// at lists where the fault applies, for readers. Some places have further conditions.
	at places
	// Disabled is set for faults that only [Scenario.With] or [Scenario.Consistency] enables.
	Disabled bool
	// rank is the position in the search. Faults that find the most bugs come first.
	rank int
	// Simpler are the faults that are tried instead when a failure is shrunk, because they are easier to understand.
	Simpler []Fault
}

// places are kinds of injection points.
type places uint16

// The places.
const (
	AtRead         places = 1 << iota // reads from the API server
	AtWrite                           // writes to the API server
	atOwnedWrite                      // writes of objects that have a name and, if they are created, an owner
	AtCreate                          // creations of objects that do not exist
	AtChange                          // updates, patches and deletions of objects that exist
	AtExternalRead                    // reads from external systems
	AtExternalCall                    // other calls to external systems
	atAnyRequest                      // requests of all kinds, also reads from a cache
	AtEvent                           // watch events of caches
	AtActor                           // changes that an actor or the garbage collector acts on
	atIdle                            // moments when the controller is idle
	atStart                           // the start of the scenario
)

// placeNames are the names of places in the guide, in the order of the constants.
var placeNames = []string{
	"live reads",
	"writes",
	"writes of owned objects",
	"creates",
	"updates, patches, deletes",
	"external reads",
	"external calls",
	"all requests",
	"watch events",
	"actors",
	"idle",
	"start",
}

// Table has a row for each fault. The order is the order of the bits of a faultSet, and so part of the order in which
// schedules are tried.
var Table = []Row{
	{
		fault: CrashBefore, Meaning: "the process ends before a write takes effect",
		at: AtWrite | AtExternalCall, rank: 3,
	},
	{
		fault: CrashAfter, Meaning: "the process ends after a write took effect, before the response",
		at: AtWrite | AtExternalCall, rank: 1,
	},
	{
		fault: TimeoutApplied, Meaning: "a write times out, although it takes effect",
		at: AtWrite | AtExternalCall, rank: 1, Simpler: []Fault{CrashAfter},
	},
	{
		fault: TimeoutLost, Meaning: "a request times out without an effect",
		at: AtRead | AtWrite | AtExternalRead | AtExternalCall, rank: 3,
	},
	{
		fault: TooManyRequests, Meaning: "the API server responds with status 429",
		at: AtRead | AtWrite, rank: 3, Simpler: []Fault{ServerError},
	},
	{
		fault: ServerError, Meaning: "the API server responds with status 500",
		at: AtRead | AtWrite, rank: 3, Simpler: []Fault{TimeoutLost},
	},
	{
		fault: Quota, Meaning: "a quota refuses creations of a kind in a namespace until the controller is idle",
		at: AtCreate, Disabled: true, rank: 3,
	},
	{
		fault: Forbidden, Meaning: "the permission for a request is missing until the controller is idle",
		at: AtRead | AtWrite, Disabled: true, rank: 3,
	},
	{
		fault: KindRemoved,
		Meaning: "another client deletes a CustomResourceDefinition and so all objects of the kind, and creates it again " +
			"after 16 s",
		at: atAnyRequest | atIdle | atStart, Disabled: true, rank: 3,
	},
	{
		fault: Conflict, Meaning: "another client changes the object just before the write",
		at: AtChange, rank: 2,
	},
	{
		fault:   Exists,
		Meaning: "the object exists just before its creation, as if an earlier attempt took effect late",
		at:      AtCreate,
		rank:    3,
	},
	{
		fault: Taken, Meaning: "another client uses the name for a short time, with another controller",
		at: AtCreate, rank: 3,
	},
	{
		fault: TakenUnnoticed, Meaning: "the same, and no event reports that the name is free again",
		at: AtCreate, Disabled: true, rank: 3,
	},
	{
		fault: Deleted, Meaning: "another client deletes the object just before the write",
		at: AtChange, rank: 3,
	},
	{
		fault: Recreated, Meaning: "another client deletes and recreates the object just before the write",
		at: AtChange, rank: 3, Simpler: []Fault{Deleted},
	},
	{
		fault: HandOver,
		Meaning: "the process ends during a write, which takes effect after the first reconcile of the " +
			"next process",
		at:      atOwnedWrite,
		rank:    3,
		Simpler: []Fault{CrashAfter, CrashBefore},
	},
	{
		fault: Pause,
		Meaning: "the process stops for three times the duration of its Lease, or a minute without one, and then continues " +
			"with this request",
		at: atAnyRequest, Disabled: true, rank: 1,
	},
	{
		fault: LagRead, Meaning: "a cache lacks this event and later ones until it has been read once",
		at: AtEvent, rank: 3,
	},
	{
		fault: LagReconcile, Meaning: "a cache lacks this event and later ones until the end of a reconcile",
		at: AtEvent, rank: 2, Simpler: []Fault{LagRead},
	},
	{
		fault: LagLong, Meaning: "a cache lacks this event and later ones for 100 ms or five reconciles",
		at: AtEvent, rank: 2, Simpler: []Fault{LagRead, LagReconcile},
	},
	{
		fault: Relist,
		Meaning: "a cache lacks this event and later ones for 100 ms or five reconciles, and then lists " +
			"again",
		at:      AtEvent,
		rank:    3,
		Simpler: []Fault{LagReconcile, LagLong},
	},
	{
		fault: Resync, Meaning: "a cache repeats all objects as updates without a change",
		at: AtEvent, rank: 3,
	},
	{
		fault: ListOrder, Meaning: "lists from a cache have a different order each time",
		at: atStart, rank: 0,
	},
	{
		fault: StaleStart,
		Meaning: "a process starts with an old cache: one to three events old, or from before a creation, a " +
			"deletion or a change of the generation",
		at: atIdle, Disabled: true, rank: 3,
	},
	{
		fault: Restart, Meaning: "the process ends while no reconcile is running",
		at: atIdle, rank: 3,
	},
	{
		fault: Meanwhile, Meaning: "users perform their next steps during a reconcile",
		at: atAnyRequest, rank: 3,
	},
	{
		fault: Overtaken, Meaning: "another reconcile finishes before the request is answered",
		at: atAnyRequest, rank: 3,
	},
	{
		fault: Late, Meaning: "an actor acts only when everything else is idle",
		at: AtActor, rank: 3,
	},
	{
		fault: Early, Meaning: "an actor acts at once, during a reconcile",
		at: AtActor, rank: 3,
	},
	{
		fault: ChildDeleted, Meaning: "another client deletes an object of the reconciler when the controller is idle",
		at: atIdle, rank: 1,
	},
	{
		fault: Flap, Meaning: "a workload is unavailable for a short time",
		at: atIdle, rank: 3,
	},
	{
		fault: Drift, Meaning: "another client changes an object of the reconciler when the controller is idle",
		at: atIdle, Disabled: true, rank: 3,
	},
	{
		fault: Disturbance, Meaning: "users do something that is not a step, at any moment",
		at: atAnyRequest | atIdle, rank: 2,
	},
}

// All are the faults of the table, in its order.
var All = func() []Fault {
	faults := make([]Fault, 0, len(Table))
	for _, row := range Table {
		faults = append(faults, row.fault)
	}
	return faults
}()

// Row returns the row of a fault, or an empty row if no fault has that name.
func (f Fault) Row() *Row {
	if i := slices.Index(All, f); i >= 0 {
		return &Table[i]
	}
	return &Row{}
}

// Set is a set of faults.
type Set uint64

// SetOf returns a set of faults.
func SetOf(faults ...Fault) Set {
	var set Set
	for _, fault := range faults {
		set |= 1 << slices.Index(All, fault)
	}
	return set
}

// SetAt returns the faults that apply at a place.
func SetAt(place places) Set {
	return SetWhere(func(row Row) bool { return row.at&place != 0 })
}

// SetWhere returns the faults whose rows match.
func SetWhere(match func(Row) bool) Set {
	var set Set
	for i, row := range Table {
		if match(row) {
			set |= 1 << i
		}
	}
	return set
}

// Has reports whether a fault is in the set. No fault, which is "", is not.
func (s Set) Has(fault Fault) bool {
	i := slices.Index(All, fault)
	return i >= 0 && s&(1<<i) != 0
}

// Faults lists the set, in the order of allFaults.
func (s Set) Faults() []Fault {
	var faults []Fault
	for i, fault := range All {
		if s&(1<<i) != 0 {
			faults = append(faults, fault)
		}
	}
	return faults
}
