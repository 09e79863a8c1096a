// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"encoding/json"
	"strings"
	"time"
)

// Version is the version of the format that this package writes, and the only one that it reads.
const Version = 1

// Recording is what a controller saw and did for one object.
type Recording struct {
	// Version is [Version].
	Version int `json:"version"`
	// Recorded is when the recording was made.
	Recorded time.Time `json:"recorded"`
	// Controller is the name of the controller, and Object the object that it reconciles.
	Controller string `json:"controller"`
	Object     Ref    `json:"object"`
	// Before are the last known versions of objects before the first run, if there were earlier runs, which Omitted
	// counts.
	Before  []Object `json:"before,omitempty"`
	Omitted int      `json:"omitted,omitempty"`
	// Runs are the reconciles, the oldest first.
	Runs []Run `json:"runs"`
}

// Ref identifies an object.
type Ref struct {
	Group     string `json:"group,omitempty"`
	Version   string `json:"version,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// String returns the kind and the name, for example "ConfigMap default/a".
func (r Ref) String() string { return r.Kind + " " + strings.TrimPrefix(r.Namespace+"/"+r.Name, "/") }

// Run is a reconcile.
type Run struct {
	// ID is the reconcile ID in log lines.
	ID       string        `json:"id"`
	Started  time.Time     `json:"started"`
	Duration time.Duration `json:"durationNs"`
	// Outcome is Changed, NoOp, Failed or Panicked.
	Outcome string `json:"outcome"`
	// Error is the error that the reconcile returned.
	Error string `json:"error,omitempty"`
	// Causes are the reasons why the reconcile ran, the oldest first.
	Causes []Cause `json:"causes,omitempty"`
	// Objects are the objects of the causes, if no earlier answer or cause had them in that version.
	Objects []Object `json:"objects,omitempty"`
	Calls   []Call   `json:"calls,omitempty"`
	// Omitted is the number of calls that were not kept.
	Omitted int `json:"omitted,omitempty"`
	// Loop reports whether the reconcile was found to be part of a loop.
	Loop bool `json:"loop,omitempty"`
	// NoOpsBefore is the number of reconciles directly before this one that were not kept.
	NoOpsBefore int `json:"noOpsBefore,omitempty"`
}

// Cause is a reason why a reconcile ran. It has the fields of observe.Cause.
type Cause struct {
	Type    string        `json:"type"`
	At      time.Time     `json:"at,omitzero"`
	Object  Ref           `json:"object,omitzero"`
	Verb    string        `json:"verb,omitempty"`
	Version string        `json:"resourceVersion,omitempty"`
	Count   int           `json:"count,omitempty"`
	After   time.Duration `json:"afterNs,omitempty"`
	Attempt int           `json:"attempt,omitempty"`
	Error   string        `json:"error,omitempty"`
}

// Call is a call of the reconciler. It has the fields of observe.Call.
type Call struct {
	// At is when it was answered.
	At           time.Time     `json:"at"`
	Duration     time.Duration `json:"durationNs"`
	Verb         string        `json:"verb"`
	Apply        bool          `json:"apply,omitempty"`
	DryRun       bool          `json:"dryRun,omitempty"`
	Object       Ref           `json:"object"`
	GenerateName string        `json:"generateName,omitempty"`
	Subresource  string        `json:"subresource,omitempty"`
	// Cached reports whether the answer comes from a cache.
	Cached bool   `json:"cached,omitempty"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	NoOp   bool   `json:"noOp,omitempty"`
	Items  int    `json:"items,omitempty"`
	// Error is the error of the call, or nil.
	Error *Error `json:"error,omitempty"`
	// Objects are the objects of the answer that no earlier answer or cause had in that version.
	Objects []Object `json:"objects,omitempty"`
	// Stale are the objects that the answer did not have, or had in an older version, although an earlier answer had them.
	Stale []Stale `json:"stale,omitempty"`
}

// Error is an error of a call.
type Error struct {
	Text string `json:"text"`
	// Code and Reason are the code and the reason of the API server. They are zero for other errors, such as errors of the
	// network.
	Code   int    `json:"code,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Object is a version of an object.
type Object struct {
	Ref
	ResourceVersion string `json:"resourceVersion"`
	// Content is the object with masked values. It is empty if the answer was only its metadata, or if an earlier answer
	// had the same version, and one between them did not have the object.
	Content json.RawMessage `json:"content,omitempty"`
}

// Stale is an object that an answer had in an old version.
type Stale struct {
	Ref
	// Has is the resource version in the answer, or "" if the answer did not have the object.
	Has string `json:"has,omitempty"`
	// Known is the resource version that an earlier answer had. It is empty for an object that an earlier call deleted.
	Known string `json:"known,omitempty"`
}
