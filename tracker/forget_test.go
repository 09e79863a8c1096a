// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestForget(t *testing.T) {
	anywhere := Reference{Kind: "ConfigMap", Selector: labels.Everything()}
	tests := map[string]struct {
		reason string
		forget client.Object
		want   []types.NamespacedName
	}{
		"One": {
			reason: "all tracks of the observer are dropped, others stay",
			forget: observerNamed("a"),
			want:   observerNames("b"),
		},
		"Unknown": {
			reason: "the observer has no tracks",
			forget: observerNamed("c"),
			want:   observerNames("a", "b"),
		},
		"UnknownKind": {
			reason: "no observer of the kind has tracks",
			forget: metadataNamed("a", "v1", "Secret"),
			want:   observerNames("a", "b"),
		},
		"OtherNamespace": {
			reason: "the namespace is part of the name",
			forget: &corev1.ConfigMap{ObjectMeta: metaOf("other", "a", nil)},
			want:   observerNames("a", "b"),
		},
		"Watched": {
			reason: "the name is that of a watched object, not of an observer",
			forget: &corev1.ConfigMap{ObjectMeta: metaOf(byName.Namespace, byName.Name, nil)},
			want:   observerNames("a", "b"),
		},
		"Nil": {
			reason: "a nil observer is ignored",
			want:   observerNames("a", "b"),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tr := New(clientgoscheme.Scheme, time.Hour)
			for _, ref := range []Reference{byName, bySelector, anywhere} {
				mustTrack(t, tr, ref, observerNamed("a"))
				mustTrack(t, tr, ref, observerNamed("b"))
			}
			tr.(Forgetter).Forget(tt.forget)
			if diff := cmp.Diff(tt.want, mustGetObservers(t, tr, eventObject)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
			checkConsistent(t, tr.(*tracker))
		})
	}
}

// stranger is a type that no scheme knows.
type stranger struct{ corev1.ConfigMap }

func TestForgetDistinguishesKinds(t *testing.T) {
	named := metaOf("observers", "a", nil)
	tests := map[string]struct {
		reason        string
		watch, forget client.Object
		same          bool
	}{
		"TypedThenMetadata": {
			reason: "the scheme knows the kind of the type",
			watch:  &appsv1.Deployment{ObjectMeta: named},
			forget: metadataNamed("a", "apps/v1", "Deployment"),
			same:   true,
		},
		"MetadataThenUnstructured": {
			reason: "the Go type and the version do not matter",
			watch:  metadataNamed("a", "apps/v1", "Deployment"),
			forget: &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "apps/v1beta2", "kind": "Deployment",
				"metadata": map[string]any{"namespace": "observers", "name": "a"},
			}},
			same: true,
		},
		"WithKind": {
			reason: "an object may have its kind set or not",
			watch:  &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: named},
			forget: &appsv1.Deployment{ObjectMeta: named},
			same:   true,
		},
		"OtherType": {
			reason: "types are of different kinds",
			watch:  &appsv1.Deployment{ObjectMeta: named},
			forget: &appsv1.StatefulSet{ObjectMeta: named},
		},
		"OtherKindOfType": {
			reason: "one type may stand for several kinds, duck types do",
			watch: &stranger{
				corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: named},
			},
			forget: &stranger{
				corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"}, ObjectMeta: named},
			},
		},
		"OtherGroup": {
			reason: "a kind belongs to a group",
			watch:  metadataNamed("a", "apps/v1", "Deployment"),
			forget: metadataNamed("a", "example.com/v1", "Deployment"),
		},
		"UnknownType": {
			reason: "the Go type identifies the observer if its kind is unknown",
			watch:  &stranger{corev1.ConfigMap{ObjectMeta: named}},
			forget: &stranger{corev1.ConfigMap{ObjectMeta: named}},
			same:   true,
		},
		"MetadataWithoutKind": {
			reason: "equal Go types of unknown kind are the same observer",
			watch:  metadataNamed("a", "", ""),
			forget: metadataNamed("a", "", ""),
			same:   true,
		},
		"UnknownTypes": {
			reason: "different Go types of unknown kind are different observers",
			watch:  metadataNamed("a", "", ""),
			forget: &stranger{corev1.ConfigMap{ObjectMeta: named}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tr := newTracker(clientgoscheme.Scheme, time.Hour)
			mustTrack(t, tr, byName, tt.watch)
			tr.Forget(tt.forget)
			want := observerNames("a")
			if tt.same {
				want = observerNames()
			}
			if diff := cmp.Diff(want, mustGetObservers(t, tr, eventObject)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
			checkConsistent(t, tr)
		})
	}
}

// A name is found once, and as long as an observer of any kind has it.
func TestSameNameOfSeveralKinds(t *testing.T) {
	tests := map[string]struct {
		first, second Reference
		others        int
	}{
		"OneTarget":     {byName, byName, 0},
		"Selector":      {bySelector, bySelector, 0},
		"TwoTargets":    {byName, bySelector, 0},
		"AmongMany":     {byName, byName, 3 * fewNames},
		"ManyByOneEach": {bySelector, byName, 3 * fewNames},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tr := newTracker(clientgoscheme.Scheme, time.Hour)
			names := []string{"a"}
			for i := range tt.others {
				names = append(names, fmt.Sprintf("b%02d", i))
			}
			find := func(when string, names ...string) {
				t.Helper()
				if diff := cmp.Diff(observerNames(names...), mustGetObservers(t, tr, eventObject)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", when, diff)
				}
				checkConsistent(t, tr)
			}
			for _, name := range names {
				mustTrack(t, tr, tt.first, observerNamed(name))
				mustTrack(t, tr, tt.second, metadataNamed(name, "v1", "Secret"))
			}
			find("two kinds", names...)
			tr.Forget(observerNamed("a"))
			find("the other kind stays", names...)
			tr.Forget(metadataNamed("a", "v1", "Secret"))
			find("no observer stays", names[1:]...)
		})
	}
}

func TestForgottenMayTrackAgain(t *testing.T) {
	tr := New(clientgoscheme.Scheme, time.Hour)
	for range 3 {
		mustTrack(t, tr, byName, observerNamed("a"))
		if diff := cmp.Diff(observerNames("a"), mustGetObservers(t, tr, eventObject)); diff != "" {
			t.Errorf("tracked (-want +got):\n%s", diff)
		}
		tr.(Forgetter).Forget(observerNamed("a"))
		if diff := cmp.Diff(observerNames(), mustGetObservers(t, tr, eventObject)); diff != "" {
			t.Errorf("forgotten (-want +got):\n%s", diff)
		}
	}
}
