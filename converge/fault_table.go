// SPDX-License-Identifier: Apache-2.0

package converge

import "slices"

// faultRow describes a fault. The search, the pages and the table of the guide read it. The injection points
// decide where exactly a fault is injected: gateway.go, watches.go, actors.go, others.go and others_idle.go.
type faultRow struct {
	fault Fault
	// meaning describes the fault in the guide and on pages.
	meaning string
	// at lists where the fault applies, for readers. Some places have further conditions.
	at places
	// disabled is set for faults that only [Scenario.With] or [Scenario.Consistency] enables.
	disabled bool
	// rank is the position in the search. Faults that find the most bugs come first.
	rank int
	// simpler are the faults that are tried instead when a failure is shrunk, because they are easier to understand.
	simpler []Fault
}

// places are kinds of injection points.
type places uint16

const (
	atRead         places = 1 << iota // reads from the API server
	atWrite                           // writes to the API server
	atOwnedWrite                      // writes of objects that have a name and, if they are created, an owner
	atCreate                          // creations of objects that do not exist
	atChange                          // updates, patches and deletions of objects that exist
	atExternalRead                    // reads from external systems
	atExternalCall                    // other calls to external systems
	atAnyRequest                      // requests of all kinds, also reads from a cache
	atEvent                           // watch events of caches
	atActor                           // changes that an actor or the garbage collector acts on
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

// faultTable has a row for each fault. The order is that of the bits of a faultSet, and so part of the order in which
// schedules are tried.
var faultTable = []faultRow{
	{
		fault: FaultCrashBefore, meaning: "the process ends before a write takes effect",
		at: atWrite | atExternalCall, rank: 3,
	},
	{
		fault: FaultCrashAfter, meaning: "the process ends after a write took effect, before the response",
		at: atWrite | atExternalCall, rank: 1,
	},
	{
		fault: FaultTimeoutApplied, meaning: "a write times out, although it takes effect",
		at: atWrite | atExternalCall, rank: 1, simpler: []Fault{FaultCrashAfter},
	},
	{
		fault: FaultTimeoutLost, meaning: "a request times out without an effect",
		at: atRead | atWrite | atExternalRead | atExternalCall, rank: 3,
	},
	{
		fault: FaultTooManyRequests, meaning: "the API server responds with status 429",
		at: atRead | atWrite, rank: 3, simpler: []Fault{FaultServerError},
	},
	{
		fault: FaultServerError, meaning: "the API server responds with status 500",
		at: atRead | atWrite, rank: 3, simpler: []Fault{FaultTimeoutLost},
	},
	{
		fault: FaultQuota, meaning: "a quota refuses creations of a kind in a namespace until the controller is idle",
		at: atCreate, disabled: true, rank: 3,
	},
	{
		fault: FaultForbidden, meaning: "the permission for a request is missing until the controller is idle",
		at: atRead | atWrite, disabled: true, rank: 3,
	},
	{
		fault: FaultConflict, meaning: "another client changes the object just before the write",
		at: atChange, rank: 2,
	},
	{
		fault:   FaultExists,
		meaning: "the object exists just before its creation, as if an earlier attempt took effect late",
		at:      atCreate,
		rank:    3,
	},
	{
		fault: FaultTaken, meaning: "another client uses the name for a short time, with another controller",
		at: atCreate, rank: 3,
	},
	{
		fault: FaultTakenUnnoticed, meaning: "the same, and no event reports that the name is free again",
		at: atCreate, disabled: true, rank: 3,
	},
	{
		fault: FaultDeleted, meaning: "another client deletes the object just before the write",
		at: atChange, rank: 3,
	},
	{
		fault: FaultRecreated, meaning: "another client deletes and recreates the object just before the write",
		at: atChange, rank: 3, simpler: []Fault{FaultDeleted},
	},
	{
		fault: FaultHandOver,
		meaning: "the process ends during a write, which takes effect after the first reconcile of the " +
			"next process",
		at:      atOwnedWrite,
		rank:    3,
		simpler: []Fault{FaultCrashAfter, FaultCrashBefore},
	},
	{
		fault: FaultLagRead, meaning: "a cache lacks this event and later ones until it has been read once",
		at: atEvent, rank: 3,
	},
	{
		fault: FaultLagReconcile, meaning: "a cache lacks this event and later ones until the end of a reconcile",
		at: atEvent, rank: 2, simpler: []Fault{FaultLagRead},
	},
	{
		fault: FaultLagLong, meaning: "a cache lacks this event and later ones for 100 ms or five reconciles",
		at: atEvent, rank: 2, simpler: []Fault{FaultLagRead, FaultLagReconcile},
	},
	{
		fault: FaultRelist,
		meaning: "a cache lacks this event and later ones for 100 ms or five reconciles, and then lists " +
			"again",
		at:      atEvent,
		rank:    3,
		simpler: []Fault{FaultLagReconcile, FaultLagLong},
	},
	{
		fault: FaultResync, meaning: "a cache repeats all objects as updates without a change",
		at: atEvent, rank: 3,
	},
	{
		fault: FaultListOrder, meaning: "lists from a cache have a different order each time",
		at: atStart, rank: 0,
	},
	{
		fault: FaultStaleStart,
		meaning: "a process starts with an old cache: one to three events old, or from before a creation, a " +
			"deletion or a change of the generation",
		at: atIdle, disabled: true, rank: 3,
	},
	{
		fault: FaultRestart, meaning: "the process ends while no reconcile is running",
		at: atIdle, rank: 3,
	},
	{
		fault: FaultMeanwhile, meaning: "users perform their next steps during a reconcile",
		at: atAnyRequest, rank: 3,
	},
	{
		fault: FaultOvertaken, meaning: "another reconcile finishes before the request is answered",
		at: atAnyRequest, rank: 3,
	},
	{
		fault: FaultLate, meaning: "an actor acts only when everything else is idle",
		at: atActor, rank: 3,
	},
	{
		fault: FaultEarly, meaning: "an actor acts at once, during a reconcile",
		at: atActor, rank: 3,
	},
	{
		fault: FaultChildDeleted, meaning: "another client deletes an object of the reconciler when the controller is idle",
		at: atIdle, rank: 1,
	},
	{
		fault: FaultFlap, meaning: "a workload is unavailable for a short time",
		at: atIdle, rank: 3,
	},
	{
		fault: FaultDrift, meaning: "another client changes an object of the reconciler when the controller is idle",
		at: atIdle, disabled: true, rank: 3,
	},
	{
		fault: FaultDisturbance, meaning: "users do something that is not a step, at any moment",
		at: atAnyRequest | atIdle, rank: 2,
	},
}

// allFaults are the faults of the table, in its order.
var allFaults = func() []Fault {
	faults := make([]Fault, 0, len(faultTable))
	for _, row := range faultTable {
		faults = append(faults, row.fault)
	}
	return faults
}()

// row returns the row of a fault, or an empty row if no fault has that name.
func (f Fault) row() *faultRow {
	if i := slices.Index(allFaults, f); i >= 0 {
		return &faultTable[i]
	}
	return &faultRow{}
}

// faultSet is a set of faults.
type faultSet uint32

func setOf(faults ...Fault) faultSet {
	var set faultSet
	for _, fault := range faults {
		set |= 1 << slices.Index(allFaults, fault)
	}
	return set
}

// faultsAt returns the faults that apply at a place.
func faultsAt(place places) faultSet {
	return faultsWhere(func(row faultRow) bool { return row.at&place != 0 })
}

func faultsWhere(match func(faultRow) bool) faultSet {
	var set faultSet
	for i, row := range faultTable {
		if match(row) {
			set |= 1 << i
		}
	}
	return set
}

// has reports whether a fault is in the set. No fault, which is "", is not.
func (s faultSet) has(fault Fault) bool {
	i := slices.Index(allFaults, fault)
	return i >= 0 && s&(1<<i) != 0
}

// faults lists the set, in the order of allFaults.
func (s faultSet) faults() []Fault {
	var faults []Fault
	for i, fault := range allFaults {
		if s&(1<<i) != 0 {
			faults = append(faults, fault)
		}
	}
	return faults
}
