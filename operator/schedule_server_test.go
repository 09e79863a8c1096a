// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// scheduleServer is an API server with one namespace of one kind. Stored objects are never modified.
type scheduleServer struct {
	world   *scheduleWorld
	proto   subject
	objects map[string]subject
	history []serverChange
	uids    int
}

// serverChange is one watch event. For a creation, before is nil. For a deletion, after is nil and last is the last
// state.
type serverChange struct {
	name                string
	before, after, last subject
}

// firstVersion is the resource version of the empty server. The change at position n of the history has firstVersion +
// n + 1.
const firstVersion = 100

func (s *scheduleServer) store(name string, after, last subject) {
	version := strconv.Itoa(firstVersion + len(s.history) + 1)
	before := s.objects[name]
	if after == nil {
		last.SetResourceVersion(version)
		delete(s.objects, name)
	} else {
		after.SetResourceVersion(version)
		s.objects[name] = after
	}
	s.world.tracef("  server: %s becomes %s", before, after)
	if after != nil {
		s.world.mustStay(after)
	} else {
		s.world.mustStay(last)
	}
	s.history = append(s.history, serverChange{name: name, before: before, after: after, last: last})
}

// at returns the objects at a position of the history.
func (s *scheduleServer) at(position int) map[string]subject {
	objects := map[string]subject{}
	for _, change := range s.history[:position] {
		if change.after == nil {
			delete(objects, change.name)
		} else {
			objects[change.name] = change.after
		}
	}
	return objects
}

func (s *scheduleServer) create(name string, finalizers ...string) {
	if s.objects[name] != nil {
		return
	}
	s.uids++
	created := copyOf(s.proto)
	created.SetNamespace("default")
	created.SetName(name)
	created.SetUID(types.UID(fmt.Sprintf("uid-%03d", s.uids)))
	created.SetGeneration(1)
	created.SetCreationTimestamp(metav1.Now().Rfc3339Copy())
	created.SetFinalizers(finalizers)
	created.SetLabels(map[string]string{"label": "0"})
	*created.wanted() = 1
	s.store(name, created, nil)
}

// write changes a resource. If the resource is being deleted, removing its last finalizer deletes it. A no-op write
// has no effect.
func (s *scheduleServer) write(name string, change func(subject)) subject {
	before := s.objects[name]
	if before == nil {
		return nil
	}
	after := copyOf(before)
	change(after)
	if sameContent(before, after) {
		return before
	}
	if *before.wanted() != *after.wanted() || isDeleting(before) != isDeleting(after) {
		after.SetGeneration(before.GetGeneration() + 1)
	}
	if isDeleting(after) && len(after.GetFinalizers()) == 0 {
		answer := copyOf(after)
		s.store(name, nil, after)
		return answer
	}
	s.store(name, after, nil)
	return after
}

func (s *scheduleServer) delete(name string) {
	s.write(name, func(obj subject) {
		if !isDeleting(obj) {
			obj.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
		}
	})
}

// patchBody has all fields that the code under test patches.
type patchBody struct {
	Metadata struct {
		UID             types.UID       `json:"uid"`
		ResourceVersion string          `json:"resourceVersion"`
		Finalizers      json.RawMessage `json:"finalizers"`
	} `json:"metadata"`
	Status struct {
		ObservedGeneration *int64          `json:"observedGeneration"`
		Conditions         json.RawMessage `json:"conditions"`
	} `json:"status"`
}

var errAddsFinalizer = errors.New("no new finalizers can be added if the object is being deleted")

// patch applies a merge patch, with its preconditions. A patch of the status subresource must contain only the status.
func (s *scheduleServer) patch(name string, data []byte, status bool) (subject, error) {
	body := patchBody{}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&body); err != nil {
		panic(fmt.Errorf("unexpected patch %s: %w", data, err))
	}
	before := s.objects[name]
	switch {
	case before == nil:
		return nil, apierrs.NewNotFound(scheduleResource, name)
	case body.Metadata.ResourceVersion != "" && body.Metadata.ResourceVersion != before.GetResourceVersion():
		return nil, apierrs.NewConflict(scheduleResource, name, errors.New("the object has been modified"))
	case body.Metadata.UID != "" && body.Metadata.UID != before.GetUID():
		return nil, apierrs.NewInvalid(scheduleGroup.WithKind("Subject").GroupKind(), name, nil)
	}
	var finalizers []string
	var conditions []metav1.Condition
	mustDecode(body.Metadata.Finalizers, &finalizers)
	mustDecode(body.Status.Conditions, &conditions)
	if !status && isDeleting(before) &&
		slices.ContainsFunc(finalizers, func(f string) bool { return !slices.Contains(before.GetFinalizers(), f) }) {
		return nil, apierrs.NewForbidden(scheduleResource, name, errAddsFinalizer)
	}
	return s.write(name, func(obj subject) {
		switch m, ok := obj.(*marked); {
		case !status && body.Metadata.Finalizers != nil:
			obj.SetFinalizers(finalizers)
		case status && ok && body.Status.ObservedGeneration != nil:
			m.Status.ObservedGeneration = *body.Status.ObservedGeneration
		case status && ok && body.Status.Conditions != nil:
			m.Status.Conditions = conditions
		}
	}), nil
}

func mustDecode(data json.RawMessage, into any) {
	if data == nil {
		return
	}
	if err := json.Unmarshal(data, into); err != nil {
		panic(err)
	}
}
