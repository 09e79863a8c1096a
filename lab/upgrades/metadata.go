// SPDX-License-Identifier: Apache-2.0

package upgrades

import (
	"encoding/json"
	"errors"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"trueup.dev/converge"
)

const (
	oldFinalizer    = "old.upgrades.trueup.dev/cleanup"
	newFinalizer    = "upgrades.trueup.dev/cleanup"
	sizeAnnotation  = "upgrades.trueup.dev/size"
	imageAnnotation = "upgrades.trueup.dev/image"
)

// metadata are bugs with finalizers, owner references and annotations.
var metadata = []Entry{
	{
		Name:   "renamed-finalizer",
		About:  "The new version has another finalizer, and never removes the old one, so that deletions do not end.",
		Oracle: converge.OracleEndState, noRollback: "the old version does not remove the new finalizer",
		old:   version{sync: (*session).putRecord, cleanUp: (*session).deleteRecord, finalizers: []string{oldFinalizer}},
		buggy: version{sync: (*session).putRecord, cleanUp: (*session).deleteRecord, finalizers: []string{newFinalizer}},
		correct: version{
			sync: func(s *session) error {
				if err := s.change(func() {
					controllerutil.AddFinalizer(s.App, newFinalizer)
					controllerutil.RemoveFinalizer(s.App, oldFinalizer)
				}); err != nil {
					return err
				}
				return s.putRecord()
			},
			cleanUp: (*session).deleteRecord, finalizers: []string{newFinalizer, oldFinalizer}, keepsFinalizers: true,
		},
	},
	{
		Name:   "dropped-finalizer",
		About:  "The new version needs no finalizer, and leaves those of the old one, so that deletions do not end.",
		Oracle: converge.OracleEndState,
		old:    version{sync: func(s *session) error { return s.config("") }, finalizers: []string{oldFinalizer}},
		buggy:  version{sync: func(s *session) error { return s.config("") }},
		correct: version{
			sync: func(s *session) error {
				return errors.Join(s.change(func() { controllerutil.RemoveFinalizer(s.App, oldFinalizer) }), s.config(""))
			},
			finalizers: []string{oldFinalizer}, keepsFinalizers: true,
		},
	},
	{
		Name:   "finalizer-for-new-objects",
		About:  "The new version sets its finalizer on new objects only, so that records of existing ones remain.",
		Oracle: converge.OracleEndState, noRollback: "the old version does not remove the finalizer",
		old: version{sync: func(s *session) error {
			s.Status.Initialized = true
			return s.config("")
		}},
		buggy: version{
			sync: func(s *session) error {
				if !s.Status.Initialized {
					if err := s.addFinalizers(); err != nil {
						return err
					}
				}
				s.Status.Initialized = true
				return errors.Join(s.putRecord(), s.config(""))
			},
			cleanUp: (*session).deleteRecord, finalizers: []string{newFinalizer}, keepsFinalizers: true,
		},
		correct: version{
			sync: func(s *session) error {
				s.Status.Initialized = true
				return errors.Join(s.putRecord(), s.config(""))
			},
			cleanUp: (*session).deleteRecord, finalizers: []string{newFinalizer},
		},
	},
	{
		Name:   "owner-of-old-children",
		About:  "The new version sets owner references on new children only, and no longer deletes the others.",
		Oracle: converge.OracleEndState, noRollback: "the old version does not remove owner references",
		without: "the old version does not notice it, because no event leads to the app",
		old: version{
			sync: func(s *session) error { return s.unowned() },
			cleanUp: func(s *session) error {
				return client.IgnoreNotFound(s.Delete(s.ctx, &corev1.ConfigMap{ObjectMeta: s.child("")}))
			},
			finalizers: []string{oldFinalizer},
		},
		buggy: version{
			sync: func(s *session) error {
				return errors.Join(
					s.change(func() { controllerutil.RemoveFinalizer(s.App, oldFinalizer) }),
					s.create(&corev1.ConfigMap{ObjectMeta: s.child(""), Data: map[string]string{"image": s.Spec.Image}}),
				)
			},
			finalizers: []string{oldFinalizer}, keepsFinalizers: true,
		},
		correct: version{
			sync: func(s *session) error {
				if err := s.config(""); err != nil {
					return err
				}
				return s.change(func() { controllerutil.RemoveFinalizer(s.App, oldFinalizer) })
			},
			cleanUp: func(s *session) error {
				return client.IgnoreNotFound(s.Delete(s.ctx, &corev1.ConfigMap{ObjectMeta: s.child("")}))
			},
			finalizers: []string{oldFinalizer}, keepsFinalizers: true,
		},
	},
	{
		Name:   "format-of-annotation",
		About:  "The new version stores JSON in an annotation, and fails indefinitely on the plain number of the old one.",
		Oracle: converge.OracleQuiescence, noRollback: "the old version does not read JSON",
		old: version{sync: plainSize},
		buggy: version{sync: func(s *session) error {
			if text := s.Annotations[sizeAnnotation]; text != "" {
				if err := json.Unmarshal([]byte(text), &struct{ Size int }{}); err != nil {
					return err
				}
			}
			return s.annotate(sizeAnnotation, `{"size":`+strconv.Itoa(s.Spec.Size)+`}`)
		}},
		correct: version{sync: jsonSize},
	},
	{
		Name:   "annotation-remains",
		About:  "The new version no longer sets an annotation of its ConfigMap, and leaves that of the old one.",
		Oracle: converge.OracleEndState,
		old: version{sync: func(s *session) error {
			return s.annotated(func(c *corev1.ConfigMap) { c.Annotations = map[string]string{imageAnnotation: s.Spec.Image} })
		}},
		buggy: version{sync: func(s *session) error { return s.annotated(func(*corev1.ConfigMap) {}) }},
		correct: version{sync: func(s *session) error {
			return s.annotated(func(c *corev1.ConfigMap) { delete(c.Annotations, imageAnnotation) })
		}},
	},
}

func (s *session) putRecord() error { return s.cloud.Put(s.ctx, s.Name, s.Spec.Image) }

func (s *session) deleteRecord() error {
	if err := s.cloud.Delete(s.ctx, s.Name); !errors.Is(err, converge.ErrAbsent) {
		return err
	}
	return nil
}

// unowned keeps a ConfigMap without an owner reference.
func (s *session) unowned() error {
	config := &corev1.ConfigMap{ObjectMeta: s.child("")}
	_, err := controllerutil.CreateOrUpdate(s.ctx, s.Client, config, func() error {
		config.Data = map[string]string{"image": s.Spec.Image}
		return nil
	})
	return err
}

// annotated keeps a ConfigMap with annotations.
func (s *session) annotated(mutate func(*corev1.ConfigMap)) error {
	config := &corev1.ConfigMap{ObjectMeta: s.child("")}
	return s.ensure(config, func() error {
		config.Data = map[string]string{"image": s.Spec.Image}
		mutate(config)
		return nil
	})
}

// plainSize stores the size as a number.
func plainSize(s *session) error {
	if text := s.Annotations[sizeAnnotation]; text != "" {
		if _, err := strconv.Atoi(text); err != nil {
			return err
		}
	}
	return s.annotate(sizeAnnotation, strconv.Itoa(s.Spec.Size))
}

// jsonSize stores the size as JSON, and reads a number, too.
func jsonSize(s *session) error {
	if text := s.Annotations[sizeAnnotation]; text != "" {
		if _, err := strconv.Atoi(text); err != nil && json.Unmarshal([]byte(text), &struct{ Size int }{}) != nil {
			return err
		}
	}
	return s.annotate(sizeAnnotation, `{"size":`+strconv.Itoa(s.Spec.Size)+`}`)
}
