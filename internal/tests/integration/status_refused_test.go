// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/apis"
	"trueup.dev/reconcilers"
)

var strictKind = schema.GroupVersionKind{Group: "integration.trueup.dev", Version: "v1", Kind: "Strict"}

// strictCRD restricts the status: the phase is one of two, and the message of a condition has at most 100 characters. A
// condition needs a valid reason, as in definitions that controller-gen generates.
func strictCRD() *apiextensionsv1.CustomResourceDefinition {
	type props = apiextensionsv1.JSONSchemaProps
	object := func(properties map[string]props) props { return props{Type: "object", Properties: properties} }
	condition := object(map[string]props{
		"type": {Type: "string"}, "status": {Type: "string"}, "observedGeneration": {Type: "integer"},
		"lastTransitionTime": {Type: "string", Format: "date-time"},
		"reason":             {Type: "string", MinLength: new(int64(1)), Pattern: `^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`},
		"message":            {Type: "string", MaxLength: new(int64(100))},
	})
	definition := crd(strictKind, "stricts")
	root := object(map[string]props{"status": object(map[string]props{
		"observedGeneration": {Type: "integer"}, "blob": {Type: "string"},
		"phase":      {Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`"a"`)}, {Raw: []byte(`"b"`)}}},
		"conditions": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &condition}},
	})})
	definition.Spec.Versions[0].Schema.OpenAPIV3Schema = &root
	return definition
}

// strict is a Go type for the kind.
type strict struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Status strictStatus `json:"status,omitempty"`
}

type strictStatus struct {
	apis.Status `json:",inline"`

	Phase string `json:"phase,omitempty"`
	Blob  string `json:"blob,omitempty"`
}

func (s *strict) DeepCopyObject() runtime.Object {
	c := *s
	s.DeepCopyInto(&c.ObjectMeta)
	s.Status.DeepCopyInto(&c.Status.Status)
	return &c
}

type strictList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []strict `json:"items"`
}

func (l *strictList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = make([]strict, len(l.Items))
	for i := range l.Items {
		c.Items[i] = *l.Items[i].DeepCopyObject().(*strict)
	}
	return &c
}

func (e *env) addStrict(kind schema.GroupVersionKind) {
	e.Scheme().AddKnownTypeWithName(kind, &strict{})
	e.Scheme().AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &strictList{})
	metav1.AddToGroupVersion(e.Scheme(), kind.GroupVersion())
}

func strictRoot(sync func(*strict)) setup {
	return func(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error {
		r := &reconcilers.ResourceReconciler[*strict]{Config: c, Reconciler: &reconcilers.SyncReconciler[*strict]{
			Sync: func(_ context.Context, s *strict) error {
				sync(s)
				return nil
			},
		}}
		return r.SetupWithManager(ctx, mgr)
	}
}

// What is left of a status if the API server refuses one part of it? All other parts, and an event that names it.
func TestStatusWithoutWhatTheServerRefuses(t *testing.T) {
	set := func(s *strict, kind, reason, message string) {
		meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message,
		})
	}
	for name, tc := range map[string]struct {
		sync func(*strict)
		// want are the parts that are written. event is part of the event, or "".
		want  []string
		event string
	}{
		"a phase that the schema does not have": {
			sync: func(s *strict) { s.Status.Phase = "c" },
			want: []string{"Ready=True Done"}, event: "without status.phase, the rest was written",
		},
		"a message that is too long for the schema": {
			sync: func(s *strict) { s.Status.Phase = "a"; set(s, "Other", "Done", strings.Repeat("x", 101)) },
			want: []string{"Ready=True Done", "a"}, event: "without status.conditions[type=Other], the rest was written",
		},
		"a reason with a space": {
			sync: func(s *strict) { s.Status.Phase = "a"; set(s, "Other", "not done", "") },
			want: []string{"Other=True NotDone", "Ready=True Done", "a"},
		},
		"no reason": {
			sync: func(s *strict) { s.Status.Phase = "b"; set(s, "Other", "", "") },
			want: []string{"Other=True Unspecified", "Ready=True Done", "b"},
		},
		"too large for the database": {
			sync: func(s *strict) { s.Status.Phase, s.Status.Blob = "a", strings.Repeat("x", 1700<<10) },
			want: []string{"Ready=True Done", "a"}, event: "without status.blob, the rest was written",
		},
		"too large for a message to the database": {
			sync: func(s *strict) { s.Status.Phase, s.Status.Blob = "a", strings.Repeat("x", 2<<20) },
			want: []string{"Ready=True Done", "a"}, event: "without status.blob, the rest was written",
		},
		"too large for a request": {
			sync: func(s *strict) { s.Status.Phase, s.Status.Blob = "a", strings.Repeat("x", 4<<20) },
			want: []string{"Ready=True Done", "a"}, event: "without status.blob, the rest was written",
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.addStrict(strictKind)
			e.start(strictRoot(func(s *strict) {
				tc.sync(s)
				set(s, "Ready", "Done", "")
			}))
			s := &strict{ObjectMeta: named("it")}
			e.Add(s)
			until(e, s, func(s *strict) error {
				got := []string{}
				for _, c := range s.Status.Conditions {
					got = append(got, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason))
				}
				if s.Status.Phase != "" {
					got = append(got, s.Status.Phase)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					return fmt.Errorf("unexpected status (-want +got):\n%s", diff)
				}
				return nil
			})
			if tc.event != "" {
				e.eventText("StatusUpdateFailed", tc.event)
			}
		})
	}
}

// Does the message say so if the definition of a kind has no status subresource?
func TestStatusOfAKindWithoutTheSubresource(t *testing.T) {
	e := newEnv(t)
	e.addStrict(statuslessKind)
	e.start(strictRoot(func(s *strict) { s.Status.Phase = "a" }))
	e.Add(&strict{ObjectMeta: named("it")})
	e.eventText("StatusUpdateFailed", "the CustomResourceDefinition has no status subresource")
}

var statuslessKind = schema.GroupVersionKind{Group: "integration.trueup.dev", Version: "v1", Kind: "Statusless"}

func statuslessCRD() *apiextensionsv1.CustomResourceDefinition {
	definition := crd(statuslessKind, "statuslesses")
	definition.Spec.Versions[0].Subresources = nil
	return definition
}

// eventText waits for an event with a reason and a part of its text.
func (e *env) eventText(reason, text string) {
	e.Helper()
	e.Eventually(func() error {
		var list corev1.EventList
		if err := e.List(e.Context(), &list, client.InNamespace(e.Namespace)); err != nil {
			return err
		}
		others := []string{}
		for _, event := range list.Items {
			if event.Reason == reason && strings.Contains(event.Message, text) {
				return nil
			}
			others = append(others, event.Reason+": "+event.Message)
		}
		return fmt.Errorf("no event %s with %q, got %q", reason, text, others)
	})
}
