// SPDX-License-Identifier: Apache-2.0

package upgrades

import (
	"errors"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"trueup.dev/converge"
)

// renaming moves the ConfigMap to another name, and removes the old one in each reconcile.
var renaming = version{sync: func(s *session) error { return errors.Join(s.config("-config"), s.removeConfig("")) }}

// interruptions are bugs that show if a migration is interrupted, or if both versions run for a moment.
var interruptions = []Entry{
	{
		Name:   "marked-first",
		About:  "The new version marks an app as migrated before it removes the old ConfigMap, which remains after a crash.",
		Oracle: converge.OracleEndState, noRollback: oldNames,
		old: version{sync: func(s *session) error { return s.config("") }},
		buggy: version{sync: func(s *session) error {
			if !s.Status.Migrated {
				s.Status.Migrated = true
				if err := s.Client.Status().Update(s.ctx, s.App); err != nil {
					return err
				}
				if err := s.removeConfig(""); err != nil {
					return err
				}
			}
			return s.config("-config")
		}},
		correct: renaming,
	},
	{
		Name:   "data-lost",
		About:  "The new version deletes the old ConfigMap before it has stored its data, which are lost after a crash.",
		Oracle: converge.OracleEndState, noRollback: oldNames, without: "nothing else has the data",
		old: version{sync: func(s *session) error {
			return s.create(&corev1.ConfigMap{ObjectMeta: s.child(""), Data: s.data()})
		}},
		buggy:   version{sync: func(s *session) error { return s.moveData(true) }},
		correct: version{sync: func(s *session) error { return s.moveData(false) }},
	},
	{
		Name:   "cleans-once",
		About:  "The new version removes the old ConfigMap once, and a late write of the old version creates it again.",
		Oracle: converge.OracleEndState, noRollback: oldNames,
		old: version{sync: func(s *session) error { return s.config("") }},
		buggy: version{sync: func(s *session) error {
			if err := s.config("-config"); err != nil || s.Status.Migrated {
				return err
			}
			if err := s.removeConfig(""); err != nil {
				return err
			}
			s.Status.Migrated = true
			return nil
		}},
		correct: renaming,
	},
}

// rollbacks are bugs that only a rollback shows.
var rollbacks = []Entry{
	{
		Name: "rollback-format", About: "The old version fails indefinitely on the JSON that the new one has stored.",
		Oracle: converge.OracleQuiescence, Rollback: true,
		old: version{sync: plainSize}, buggy: version{sync: jsonSize}, correct: version{sync: plainSize},
	},
	{
		Name: "rollback-left-over", About: "The old version leaves the ConfigMap that only the new one knows.",
		Oracle: converge.OracleEndState, Rollback: true,
		old:     version{sync: func(s *session) error { return s.config("") }},
		buggy:   version{sync: metrics},
		correct: version{sync: metrics},
		fixedOld: &version{sync: func(s *session) error {
			return errors.Join(s.config(""), s.removeConfig("-metrics"))
		}},
	},
	{
		Name:   "rollback-record",
		About:  "The old version does not find the ID that the new one has moved, and creates the record again.",
		Oracle: converge.OracleDuplicates, Rollback: true,
		masks: []converge.Mask{{Object: &App{}, Field: "status.record"}},
		old:   recording(annotatedRecord),
		buggy: recording((*session).movedRecord),
		correct: recording(func(s *session) recordStore {
			return recordStore{id: s.Annotations[recordAnnotation], store: func(id string) error {
				s.Status.Record = id
				return s.annotate(recordAnnotation, id)
			}}
		}),
	},
	{
		Name:   "rollback-finalizer",
		About:  "The old version does not remove the finalizer of the new one, so that deletions do not end.",
		Oracle: converge.OracleEndState, Rollback: true,
		old:     version{sync: func(s *session) error { return s.config("") }},
		buggy:   version{sync: func(s *session) error { return s.config("") }, finalizers: []string{newFinalizer}},
		correct: version{sync: func(s *session) error { return s.config("") }, finalizers: []string{newFinalizer}},
		fixedOld: &version{sync: func(s *session) error {
			return errors.Join(s.change(func() { controllerutil.RemoveFinalizer(s.App, newFinalizer) }), s.config(""))
		}, finalizers: []string{newFinalizer}, keepsFinalizers: true},
	},
}

func metrics(s *session) error { return errors.Join(s.config(""), s.config("-metrics")) }

// data are the data of a new ConfigMap: they remain if the spec changes.
func (s *session) data() map[string]string {
	return map[string]string{"size": strconv.Itoa(s.Spec.Size)}
}

// moveData keeps a ConfigMap with another name, which gets the data of the old one.
func (s *session) moveData(deleteFirst bool) error {
	child := &corev1.ConfigMap{ObjectMeta: s.child("-data"), Data: s.data()}
	old := &corev1.ConfigMap{ObjectMeta: s.child("")}
	err := s.Get(s.ctx, client.ObjectKeyFromObject(old), old)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil {
		child.Data = old.Data
	}
	if deleteFirst {
		return errors.Join(s.removeConfig(""), s.create(child))
	}
	if err := s.create(child); err != nil {
		return err
	}
	return s.removeConfig("")
}
