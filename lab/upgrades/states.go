// SPDX-License-Identifier: Apache-2.0

package upgrades

import (
	"cmp"
	"errors"

	corev1 "k8s.io/api/core/v1"

	"trueup.dev/converge"
)

const recordAnnotation = "upgrades.trueup.dev/record"

// states are bugs with state that the old version has stored elsewhere, or for other reasons.
var states = []Entry{
	{
		Name:   "record-elsewhere",
		About:  "The new version has the ID of a record in the status, ignores the annotation, and creates the record again.",
		Oracle: converge.OracleDuplicates, noRollback: "the old version does not read the status",
		old:     recording(annotatedRecord),
		buggy:   recording(func(s *session) recordStore { return s.statusRecord(s.Status.Record) }),
		correct: recording((*session).movedRecord),
	},
	{
		Name:   "default-changes-meaning",
		About:  "The new version runs without a Service by default, and leaves those that the old one has created.",
		Oracle: converge.OracleEndState,
		old:    version{sync: func(s *session) error { return s.service(func(*corev1.Service) {}) }},
		buggy:  version{sync: func(*session) error { return nil }},
		correct: version{sync: func(s *session) error {
			return s.remove(&corev1.Service{ObjectMeta: s.child("")})
		}},
	},
}

// recordStore is where a version stores the ID of a record.
type recordStore struct {
	id    string
	store func(id string) error
}

func annotatedRecord(s *session) recordStore {
	return recordStore{id: s.Annotations[recordAnnotation], store: func(id string) error {
		return s.annotate(recordAnnotation, id)
	}}
}

// statusRecord stores the ID in the status, and removes the annotation.
func (s *session) statusRecord(id string) recordStore {
	return recordStore{id: id, store: func(id string) error {
		s.Status.Record = id
		return s.annotate(recordAnnotation, "")
	}}
}

// movedRecord finds the ID in the annotation, too.
func (s *session) movedRecord() recordStore {
	return s.statusRecord(cmp.Or(s.Status.Record, s.Annotations[recordAnnotation]))
}

// recording is a version that keeps one record. It deletes those that it does not know: a response may have been lost.
func recording(stored func(*session) recordStore) version {
	return version{finalizers: []string{newFinalizer}, sync: func(s *session) error {
		store := stored(s)
		found, err := s.deleteRecords(store.id)
		if err != nil {
			return err
		}
		if !found {
			if store.id, err = s.cloud.CreateNamed(s.ctx, s.Name+"-record-", s.Spec.Image); err != nil {
				return err
			}
		}
		return store.store(store.id)
	}, cleanUp: func(s *session) error {
		_, err := s.deleteRecords("")
		return err
	}}
}

// deleteRecords deletes the records of the app except one, and reports whether that exists.
func (s *session) deleteRecords(keep string) (found bool, err error) {
	ids, err := s.cloud.List(s.ctx, s.Name+"-record-")
	if err != nil {
		return false, err
	}
	for _, id := range ids {
		if id == keep {
			found = true
		} else if err := s.cloud.Delete(s.ctx, id); err != nil && !errors.Is(err, converge.ErrAbsent) {
			return false, err
		}
	}
	return found, nil
}
