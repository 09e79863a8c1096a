// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// subject is a resource of a schedule. Its types are small, because a schedule copies them often.
type subject interface {
	client.Object
	// wanted returns the spec.
	wanted() *int
	// note returns the part of the status that users write.
	note() *int
}

// bare is a resource whose status has no mark of the handled generation.
type bare struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   int        `json:"spec,omitempty"`
	Status bareStatus `json:"status,omitzero"`
}

type bareStatus struct {
	Note int `json:"note,omitempty"`
}

func (b *bare) wanted() *int { return &b.Spec }
func (b *bare) note() *int   { return &b.Status.Note }

func (b *bare) DeepCopyObject() runtime.Object {
	copied := *b
	copyMetadata(&b.ObjectMeta, &copied.ObjectMeta)
	return &copied
}

// marked is a resource whose status has the fields that opinionated handlers use.
type marked struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   int          `json:"spec,omitempty"`
	Status markedStatus `json:"status,omitzero"`
}

type markedStatus struct {
	Note               int                `json:"note,omitempty"`
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

func (m *marked) wanted() *int { return &m.Spec }
func (m *marked) note() *int   { return &m.Status.Note }

func (m *marked) DeepCopyObject() runtime.Object {
	copied := *m
	copyMetadata(&m.ObjectMeta, &copied.ObjectMeta)
	copied.Status.Conditions = slices.Clone(m.Status.Conditions)
	return &copied
}

// copyMetadata copies the metadata that schedules use. No code sets other fields.
func copyMetadata(from, to *metav1.ObjectMeta) {
	to.Labels, to.Finalizers = maps.Clone(from.Labels), slices.Clone(from.Finalizers)
	to.DeletionTimestamp = from.DeletionTimestamp.DeepCopy()
}

func copyOf(obj subject) subject { return obj.DeepCopyObject().(subject) }

// same compares all fields that schedules use.
func same(a, b subject) bool {
	return a.GetUID() == b.GetUID() && a.GetResourceVersion() == b.GetResourceVersion() && sameContent(a, b)
}

// sameVersion is same without the finalizers of an object that is being deleted: removing the last one does not
// increment the version.
func sameVersion(a, b subject) bool {
	if isDeleting(a) && isDeleting(b) {
		a, b = copyOf(a), copyOf(b)
		a.SetFinalizers(nil)
		b.SetFinalizers(nil)
	}
	return same(a, b)
}

func sameContent(a, b subject) bool {
	if *a.wanted() != *b.wanted() || *a.note() != *b.note() || a.GetGeneration() != b.GetGeneration() ||
		isDeleting(a) != isDeleting(b) ||
		!maps.Equal(a.GetLabels(), b.GetLabels()) || !slices.Equal(a.GetFinalizers(), b.GetFinalizers()) {
		return false
	}
	ma, ok := a.(*marked)
	if !ok {
		return true
	}
	mb, ok := b.(*marked)
	return ok && ma.Status.ObservedGeneration == mb.Status.ObservedGeneration &&
		slices.Equal(ma.Status.Conditions, mb.Status.Conditions)
}

// versionOf returns the resource version as a number.
func versionOf(obj client.Object) int {
	version, err := strconv.Atoi(obj.GetResourceVersion())
	if err != nil {
		panic(err)
	}
	return version
}

func describe(obj subject) string {
	s := fmt.Sprintf(
		"%s/%s@%s gen %d spec %d", obj.GetName(), obj.GetUID(), obj.GetResourceVersion(), obj.GetGeneration(), *obj.wanted(),
	)
	if m, ok := obj.(*marked); ok {
		s += fmt.Sprintf(" observed %d", m.Status.ObservedGeneration)
	}
	if isDeleting(obj) {
		s += " deleting"
	}
	if m, ok := obj.(*marked); ok && len(m.Status.Conditions) > 0 {
		s += fmt.Sprintf(" conditions %v", m.Status.Conditions)
	}
	return s + fmt.Sprintf(" finalizers %v", obj.GetFinalizers())
}

// described formats the resources in args only when the text is read, because formatting is slow.
func described(args []any) []any {
	for i, arg := range args {
		switch obj, ok := arg.(subject); {
		case ok:
			args[i] = describe(obj)
		case arg == nil:
			args[i] = "nothing"
		}
	}
	return args
}

var (
	scheduleGroup  = schema.GroupVersion{Group: "schedule.trueup.dev", Version: "v1"}
	scheduleScheme = func() *runtime.Scheme {
		scheme := runtime.NewScheme()
		scheme.AddKnownTypeWithName(scheduleGroup.WithKind("Bare"), &bare{})
		scheme.AddKnownTypeWithName(scheduleGroup.WithKind("Marked"), &marked{})
		for _, list := range []string{"BareList", "MarkedList"} { // set-up requires them, no cache lists them here
			scheme.AddKnownTypeWithName(scheduleGroup.WithKind(list), &metav1.List{})
		}
		return scheme
	}()
	scheduleResource = scheduleGroup.WithResource("subjects").GroupResource()
)
