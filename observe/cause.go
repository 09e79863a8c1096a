// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"encoding/json"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CauseType is the type of a [Cause]. There are few types, so metrics can use them as labels.
type CauseType string

const (
	// CauseObject is an event of the reconciled object.
	CauseObject CauseType = "Object"
	// CauseOwned is an event of an object that the reconciled object owns.
	CauseOwned CauseType = "Owned"
	// CauseTracked is an event of an object that the reconciled object tracks.
	CauseTracked CauseType = "Tracked"
	// CauseWatched is an event of an object that a handler of the controller maps to the reconciled object.
	CauseWatched CauseType = "Watched"
	// CauseSource is an event of a source that is not a watch, or that does not tell its object.
	CauseSource CauseType = "Source"
	// CauseStartUp is an object that existed when the controller started.
	CauseStartUp CauseType = "StartUp"
	// CauseResync is the periodic event without a change.
	CauseResync CauseType = "Resync"
	// CauseRequeue is a requeue that the reconcile before has requested.
	CauseRequeue CauseType = "Requeue"
	// CauseRetry is a retry after an error of the reconcile before.
	CauseRetry CauseType = "Retry"
	// CauseStaleRead is a request that waited for the caches.
	CauseStaleRead CauseType = "StaleRead"
	// CauseLoopDelay is a request that was delayed because of a loop.
	CauseLoopDelay CauseType = "LoopDelay"
	// CauseUnknown is a request whose cause is not known, for example one that another program part added to the queue.
	CauseUnknown CauseType = "Unknown"
)

// Verb is what an event or a call did to an object.
type Verb string

// The verbs of events are Created, Updated, Deleted and Generic.
const (
	Created Verb = "Created"
	Updated Verb = "Updated"
	Deleted Verb = "Deleted"
	Generic Verb = "Generic"
)

// Cause is a reason why a reconcile runs.
type Cause struct {
	Type CauseType
	// At is the time when the cause occurred.
	At time.Time
	// Kind, Object and Verb are the kind, the namespace and name, and the change of the object of the event. They are
	// empty for causes that are not an event.
	Kind   schema.GroupVersionKind
	Object types.NamespacedName
	Verb   Verb
	// Count is the number of equal causes that are merged into this one, at least 1. The other fields are the fields of
	// the last.
	Count int
	// After is the delay of a requeue, a retry or a wait.
	After time.Duration
	// Attempt is the number of the retry, starting at 1, and Err the error that it follows.
	Attempt int
	Err     error

	// before and after are the objects of an update. They belong to a cache and must not be changed.
	before, after client.Object
}

// EventObject returns the object of the event, after it. It belongs to a cache and must not be changed. It is nil for
// causes that are not an event of an object.
func (c *Cause) EventObject() client.Object { return c.after }

// Change is a changed field.
type Change struct {
	// Path consists of JSON field names. List items are identified by their name, conditions by their type, other items
	// by their index. The path of a condition contains what changed after a colon, with its status and reason: "added,
	// status True". In JSON, that is the value of condition, and path is the path of the field.
	Path string `json:"path"`
	// Before and After are the values as JSON. They are empty if the value is missing, and "•••" if it is masked. The
	// values of a condition are its messages, if these differ.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// changeJSON is a change in JSON.
type changeJSON struct {
	Path      string `json:"path"`
	Condition string `json:"condition,omitempty"`
	Before    string `json:"before,omitempty"`
	After     string `json:"after,omitempty"`
}

// MarshalJSON implements [json.Marshaler].
func (c Change) MarshalJSON() ([]byte, error) {
	encoded := changeJSON{Path: c.Path, Before: c.Before, After: c.After}
	if path, condition, ok := strings.Cut(c.Path, "]: "); ok {
		encoded.Path, encoded.Condition = path+"]", condition
	}
	return json.Marshal(encoded)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (c *Change) UnmarshalJSON(data []byte) error {
	var encoded changeJSON
	if err := json.Unmarshal(data, &encoded); err != nil {
		return err
	}
	*c = Change{Path: encoded.Path, Before: encoded.Before, After: encoded.After}
	if encoded.Condition != "" {
		c.Path += ": " + encoded.Condition
	}
	return nil
}
