// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// A Transcript contains all results of a sequence on a server.
type Transcript struct {
	Namespace string
	Start     time.Time
	End       time.Time // of the last operation
	Steps     []Step
	Kinds     []schema.GroupVersionKind
	Events    map[schema.GroupVersionKind][]Event  // in the order of the server
	Stored    map[schema.GroupVersionKind][]Object // in the end, in the order of a list
	Watched   []Watched
}

// A Step is an operation and its results.
type Step struct {
	Operation
	// Answers are the results of its calls: the read of its base comes first; a list has one for each page.
	Answers []Answer
}

// Object is the JSON form of an object.
type Object = map[string]any

// An Answer is the result of a call.
type Answer struct {
	Call    string
	Object  Object // that was passed, as it is after the call; of a list what it has besides items
	Items   []Object
	Failure *Failure
}

// Failure is the error of a call.
type Failure struct {
	Type   string // of the Go value
	Text   string
	Status Object // of an error of an API
}

func failure(err error) *Failure {
	if err == nil {
		return nil
	}
	f := &Failure{Type: fmt.Sprintf("%T", err), Text: err.Error()}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		f.Status = mustJSON(status.ErrStatus)
		// Depends on the encoding of the response.
		delete(f.Status, "kind")
		delete(f.Status, "apiVersion")
	}
	return f
}

// An Event is an event of a watch.
type Event struct {
	Type   watch.EventType
	Object Object
}

// Watched has the events of a watch.
type Watched struct {
	Watch  string
	Kind   schema.GroupVersionKind
	Events []Event
}
