// SPDX-License-Identifier: Apache-2.0

// Package inject has what can be injected and where: the faults, the points of a run, the schedules that put faults at
// points, and the order in which faults are worth trying. It does not know how a fault is injected, nor what it does.
package inject

import "k8s.io/apimachinery/pkg/watch"

// Fault is the name of a fault. Package converge describes the faults to users.
type Fault string

// The faults.
const (
	CrashBefore     Fault = "crash-before"
	CrashAfter      Fault = "crash-after"
	TimeoutApplied  Fault = "timeout-applied"
	TimeoutLost     Fault = "timeout-lost"
	TooManyRequests Fault = "too-many-requests"
	ServerError     Fault = "server-error"
	Quota           Fault = "quota"
	Forbidden       Fault = "forbidden"
	KindRemoved     Fault = "kind-removed"
	Conflict        Fault = "conflict"
	Exists          Fault = "exists"
	Taken           Fault = "taken"
	TakenUnnoticed  Fault = "taken-unnoticed"
	Deleted         Fault = "deleted"
	Recreated       Fault = "recreated"
	HandOver        Fault = "hand-over"
	Pause           Fault = "pause"
	LagRead         Fault = "lag-read"
	LagReconcile    Fault = "lag-reconcile"
	LagLong         Fault = "lag-long"
	Relist          Fault = "relist"
	Resync          Fault = "resync"
	ListOrder       Fault = "list-order"
	StaleStart      Fault = "stale-start"
	Restart         Fault = "restart"
	Meanwhile       Fault = "meanwhile"
	Disturbance     Fault = "disturbance"
	Overtaken       Fault = "overtaken"
	Late            Fault = "late"
	Early           Fault = "early"
	ChildDeleted    Fault = "child-deleted"
	Flap            Fault = "flap"
	Drift           Fault = "drift"
)

// Groups of faults with similar consequences.
var (
	// ErrorFaults return an error to the reconcile.
	ErrorFaults = SetAt(AtRead) | SetOf(TimeoutApplied, Quota)
	// LostResponseFaults lose the response of a write that takes effect.
	LostResponseFaults = SetOf(CrashAfter, TimeoutApplied, HandOver)
	// RepeatFaults make a cache start again or repeat its objects. They do not undo any work.
	RepeatFaults = SetOf(Resync, ListOrder, StaleStart, Restart)
	// StaleFaults and crashFaults suggest the same mistake each.
	StaleFaults = SetOf(LagRead, LagReconcile, LagLong, Relist, StaleStart)
	CrashFaults = SetOf(CrashBefore, CrashAfter, HandOver)
	// EndingFaults end the process, and so switch the version in an upgrade.
	EndingFaults = SetOf(Restart, CrashBefore, CrashAfter, HandOver, StaleStart)
)

// EventNames are the words for watch events in actions and in messages.
var EventNames = map[watch.EventType]string{watch.Added: "added", watch.Modified: "modified", watch.Deleted: "deleted"}
