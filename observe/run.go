// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Run is one reconcile of a request. It is created when the reconcile starts, and does not change afterwards.
type Run struct {
	// ID is the reconcile ID of controller-runtime, which is also part of log lines. It is unique.
	ID string
	// Controller is the name of the controller, as in the metrics and logs of controller-runtime.
	Controller string
	// Kind is the kind of the reconciled objects. It is empty if it is unknown.
	Kind schema.GroupVersionKind
	// Object is the namespace and the name of the reconciled object.
	Object types.NamespacedName
	// Started is the time when the reconcile started.
	Started time.Time
	// Causes are the reasons why the reconcile runs, the oldest first. They are never empty. A queue merges requests for
	// an object, so there may be several. At most 16 are kept.
	Causes []Cause
	// OmittedCauses is the number of causes that were not kept.
	OmittedCauses int

	cluster string

	// attached are the values of listeners. There are few: with the pointer, a run has 256 bytes, and 288 without.
	attached [2]attachment
	more     *[]attachment
}

// SetCluster sets the name of the cluster of the object. It must be called before the run is observed.
func (r *Run) SetCluster(name string) { r.cluster = name }

// Cluster returns the name of the cluster of the object, if the controller reconciles the objects of several, or "".
func (r *Run) Cluster() string { return r.cluster }

// Name returns the name of the controller, with an @ and the name of the cluster behind it if there is one.
func (r *Run) Name() string { return fullName(r.Controller, r.cluster) }

type attachment struct{ key, value any }

// Attach keeps a value with the run, so that a listener need not look it up for each event. A listener may call it
// while it observes the [ReconcileStarted] of the run, and not afterwards. The key must be comparable and belong to the
// listener: it is best a pointer to it. A key must not be attached twice.
func (r *Run) Attach(key, value any) {
	for i := range r.attached {
		if r.attached[i].key == nil {
			r.attached[i] = attachment{key, value}
			return
		}
	}
	if r.more == nil {
		r.more = new([]attachment)
	}
	*r.more = append(*r.more, attachment{key, value})
}

// Attached returns the value for a key of [Run.Attach], or nil.
func (r *Run) Attached(key any) any {
	for i := range r.attached {
		if r.attached[i].key == key {
			return r.attached[i].value
		}
	}
	if r.more != nil {
		for _, a := range *r.more {
			if a.key == key {
				return a.value
			}
		}
	}
	return nil
}
