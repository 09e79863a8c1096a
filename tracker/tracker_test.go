// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// observerNamed returns an object to track for. Only its kind, namespace and name
// matter.
func observerNamed(name string) client.Object {
	return &corev1.ConfigMap{ObjectMeta: metaOf("observers", name, nil)}
}

// metadataNamed returns the metadata of an observer of some kind.
func metadataNamed(name, apiVersion, kind string) client.Object {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiVersion, Kind: kind},
		ObjectMeta: metaOf("observers", name, nil),
	}
}

// observerNames returns what GetObservers finds for these observers.
func observerNames(names ...string) []types.NamespacedName {
	result := []types.NamespacedName{}
	for _, name := range names {
		result = append(result, types.NamespacedName{Namespace: "observers", Name: name})
	}
	return result
}

func mustTrack(t testing.TB, tr Tracker, ref Reference, obj client.Object) {
	t.Helper()
	if err := tr.TrackReference(ref, obj); err != nil {
		t.Fatalf("TrackReference: %v", err)
	}
}

func mustGetObservers(t testing.TB, tr Tracker, obj client.Object) []types.NamespacedName {
	t.Helper()
	got, err := tr.GetObservers(obj)
	if err != nil {
		t.Fatalf("GetObservers: %v", err)
	}
	slices.SortFunc(got, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	return got
}

func metaOf(namespace, name string, lbls map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: lbls}
}

func TestGetObservers(t *testing.T) {
	selects := func(s string) labels.Selector {
		selector, err := labels.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return selector
	}
	type track struct {
		ref      Reference
		observer string
	}
	blue := map[string]string{"color": "blue", "size": "s"}

	tests := map[string]struct {
		reason string
		tracks []track
		obj    client.Object
		want   []types.NamespacedName
	}{
		"Nothing": {
			reason: "no observers are an empty list, not nil",
			obj:    &corev1.ConfigMap{ObjectMeta: metaOf("ns", "a", nil)},
			want:   []types.NamespacedName{},
		},
		"Exact": {
			reason: "group, kind, namespace and name must all be equal",
			tracks: []track{
				{Reference{Kind: "ConfigMap", Namespace: "ns", Name: "a"}, "match"},
				{Reference{APIGroup: "apps", Kind: "ConfigMap", Namespace: "ns", Name: "a"}, "group"},
				{Reference{Kind: "Secret", Namespace: "ns", Name: "a"}, "kind"},
				{Reference{Kind: "ConfigMap", Namespace: "other", Name: "a"}, "namespace"},
				{Reference{Kind: "ConfigMap", Name: "a"}, "no-namespace"},
				{Reference{Kind: "ConfigMap", Namespace: "ns", Name: "b"}, "name"},
			},
			obj:  &corev1.ConfigMap{ObjectMeta: metaOf("ns", "a", nil)},
			want: observerNames("match"),
		},
		"Shared": {
			reason: "all observers of an object are found, each once",
			tracks: []track{
				{Reference{Kind: "ConfigMap", Namespace: "ns", Name: "a"}, "first"},
				{Reference{Kind: "ConfigMap", Namespace: "ns", Name: "a"}, "second"},
				{Reference{Kind: "ConfigMap", Namespace: "ns", Name: "a"}, "first"},
			},
			obj:  &corev1.ConfigMap{ObjectMeta: metaOf("ns", "a", nil)},
			want: observerNames("first", "second"),
		},
		"Selector": {
			reason: "group, kind and labels must match, and the namespace where one is given",
			tracks: []track{
				{Reference{Kind: "ConfigMap", Namespace: "ns", Selector: selects("color=blue")}, "match"},
				{Reference{Kind: "ConfigMap", Selector: selects("color in (blue, red)")}, "any-namespace"},
				{Reference{Kind: "ConfigMap", Selector: selects("!shape,size")}, "absent-label"},
				{Reference{Kind: "ConfigMap", Namespace: "ns", Selector: selects("color=red")}, "labels"},
				{Reference{Kind: "ConfigMap", Namespace: "other", Selector: selects("color=blue")}, "namespace"},
				{Reference{Kind: "Secret", Namespace: "ns", Selector: selects("color=blue")}, "kind"},
				{Reference{APIGroup: "apps", Kind: "ConfigMap", Namespace: "ns", Selector: selects("color=blue")}, "group"},
			},
			obj:  &corev1.ConfigMap{ObjectMeta: metaOf("ns", "a", blue)},
			want: observerNames("absent-label", "any-namespace", "match"),
		},
		"SelectorWithoutLabels": {
			reason: "an object without labels matches selectors that require no label",
			tracks: []track{
				{Reference{Kind: "ConfigMap", Selector: labels.Everything()}, "everything"},
				{Reference{Kind: "ConfigMap", Selector: selects("!color")}, "absent-label"},
				{Reference{Kind: "ConfigMap", Selector: selects("color")}, "label"},
			},
			obj:  &corev1.ConfigMap{ObjectMeta: metaOf("ns", "a", nil)},
			want: observerNames("absent-label", "everything"),
		},
		"EverythingAfterNothing": {
			reason: "two selectors with the same text can differ",
			tracks: []track{
				{Reference{Kind: "ConfigMap", Selector: labels.Nothing()}, "nothing"},
				{Reference{Kind: "ConfigMap", Selector: labels.Everything()}, "everything"},
			},
			obj:  &corev1.ConfigMap{ObjectMeta: metaOf("ns", "a", blue)},
			want: observerNames("everything"),
		},
		"SelectorClusterScoped": {
			reason: "an object without namespace matches no namespace",
			tracks: []track{
				{Reference{Kind: "Namespace", Selector: selects("color=blue")}, "match"},
				{Reference{Kind: "Namespace", Namespace: "ns", Selector: selects("color=blue")}, "namespace"},
			},
			obj:  &corev1.Namespace{ObjectMeta: metaOf("", "a", blue)},
			want: observerNames("match"),
		},
		"SeveralWays": {
			reason: "an observer with several matching references is found once, others are still found",
			tracks: []track{
				{Reference{Kind: "ConfigMap", Namespace: "ns", Name: "a"}, "both"},
				{Reference{Kind: "ConfigMap", Namespace: "ns", Selector: selects("color=blue")}, "both"},
				{Reference{Kind: "ConfigMap", Selector: selects("color=blue")}, "both"},
				{Reference{Kind: "ConfigMap", Selector: selects("size=s")}, "both"},
				{Reference{Kind: "ConfigMap", Selector: selects("size=s")}, "second"},
				{Reference{Kind: "ConfigMap", Selector: selects("color")}, "second"},
				{Reference{Kind: "ConfigMap", Selector: selects("color")}, "third"},
			},
			obj:  &corev1.ConfigMap{ObjectMeta: metaOf("ns", "a", blue)},
			want: observerNames("both", "second", "third"),
		},
		"Unstructured": {
			reason: "the kind set on the object is used, in any version",
			tracks: []track{{Reference{APIGroup: "example.com", Kind: "Widget", Namespace: "ns", Name: "a"}, "match"}},
			obj: &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "example.com/v1beta1", "kind": "Widget",
				"metadata": map[string]any{"namespace": "ns", "name": "a"},
			}},
			want: observerNames("match"),
		},
		"MetadataOnly": {
			reason: "informers for metadata set the kind",
			tracks: []track{
				{Reference{APIGroup: "apps", Kind: "Deployment", Namespace: "ns", Selector: selects("color=blue")}, "match"},
			},
			obj: &metav1.PartialObjectMetadata{
				TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
				ObjectMeta: metaOf("ns", "a", blue),
			},
			want: observerNames("match"),
		},
		"Typed": {
			reason: "informers for structured types do not set the kind; the scheme has it",
			tracks: []track{{Reference{APIGroup: "apps", Kind: "Deployment", Namespace: "ns", Name: "a"}, "match"}},
			obj:    &appsv1.Deployment{ObjectMeta: metaOf("ns", "a", nil)},
			want:   observerNames("match"),
		},
		"OwnKindFirst": {
			reason: "the kind set on the object takes precedence over that of its type",
			tracks: []track{
				{Reference{APIGroup: "example.com", Kind: "Widget", Namespace: "ns", Name: "a"}, "own"},
				{Reference{APIGroup: "apps", Kind: "Deployment", Namespace: "ns", Name: "a"}, "scheme"},
			},
			obj: &appsv1.Deployment{
				TypeMeta:   metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Widget"},
				ObjectMeta: metaOf("ns", "a", nil),
			},
			want: observerNames("own"),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tr := New(clientgoscheme.Scheme, time.Hour)
			for _, track := range tt.tracks {
				mustTrack(t, tr, track.ref, observerNamed(track.observer))
			}
			if diff := cmp.Diff(tt.want, mustGetObservers(t, tr, tt.obj)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestTrackObject(t *testing.T) {
	tests := map[string]struct {
		reason string
		ref    client.Object
		event  client.Object
	}{
		"Typed": {
			reason: "typed objects need no kind",
			ref:    &appsv1.Deployment{ObjectMeta: metaOf("ns", "a", nil)},
			event:  &appsv1.Deployment{ObjectMeta: metaOf("ns", "a", nil)},
		},
		"TypedThenUnstructured": {
			reason: "the Go type and the version do not matter",
			ref:    &appsv1.Deployment{ObjectMeta: metaOf("ns", "a", nil)},
			event: &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "apps/v1beta2", "kind": "Deployment",
				"metadata": map[string]any{"namespace": "ns", "name": "a"},
			}},
		},
		"MetadataOnlyThenTyped": {
			reason: "metadata-only objects have their kind set",
			ref: &metav1.PartialObjectMetadata{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
				ObjectMeta: metaOf("ns", "a", nil),
			},
			event: &corev1.Secret{ObjectMeta: metaOf("ns", "a", nil)},
		},
		"ClusterScoped": {
			reason: "cluster-scoped objects have no namespace",
			ref:    &corev1.Namespace{ObjectMeta: metaOf("", "a", nil)},
			event:  &corev1.Namespace{ObjectMeta: metaOf("", "a", nil)},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tr := New(clientgoscheme.Scheme, time.Hour)
			if err := tr.TrackObject(tt.ref, observerNamed("match")); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(observerNames("match"), mustGetObservers(t, tr, tt.event)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestKindErrors(t *testing.T) {
	withMeta := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(withMeta); err != nil {
		t.Fatal(err)
	}
	named := metaOf("ns", "a", nil)
	tests := map[string]struct {
		reason string
		scheme *runtime.Scheme
		obj    client.Object
		check  func(error) bool
	}{
		"Nil": {
			reason: "the object is nil",
			scheme: clientgoscheme.Scheme,
			check:  func(err error) bool { return strings.Contains(err.Error(), "nil object") },
		},
		"NotRegistered": {
			reason: "the scheme does not know the type",
			scheme: runtime.NewScheme(),
			obj:    &corev1.ConfigMap{ObjectMeta: named},
			check:  runtime.IsNotRegisteredError,
		},
		"NoScheme": {
			reason: "the scheme is nil",
			obj:    &corev1.ConfigMap{ObjectMeta: named},
			check:  func(err error) bool { return strings.Contains(err.Error(), "scheme is required") },
		},
		"UnstructuredWithoutKind": {
			reason: "an unstructured object must have its kind set",
			scheme: clientgoscheme.Scheme,
			obj:    &unstructured.Unstructured{},
			check:  runtime.IsMissingKind,
		},
		"MetadataWithoutKind": {
			reason: "the kind in the scheme for PartialObjectMetadata is not the kind of the object",
			scheme: withMeta,
			obj:    &metav1.PartialObjectMetadata{ObjectMeta: named},
			check:  runtime.IsMissingKind,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tr := New(tt.scheme, time.Hour)
			if err := tr.TrackObject(tt.obj, observerNamed("a")); err == nil || !tt.check(err) {
				t.Errorf("TrackObject: %s, but the error is %v", tt.reason, err)
			}
			got, err := tr.GetObservers(tt.obj)
			if err == nil || !tt.check(err) {
				t.Errorf("GetObservers: %s, but the error is %v", tt.reason, err)
			}
			if got != nil {
				t.Errorf("GetObservers returned %v and an error", got)
			}
		})
	}
}

func TestTrackObjectErrors(t *testing.T) {
	tr := New(clientgoscheme.Scheme, time.Hour)
	err := tr.TrackObject(&corev1.ConfigMap{ObjectMeta: metaOf("ns", "", nil)}, observerNamed("a"))
	if want := errors.New("invalid Reference:\nmust provide either Name or Selector"); err == nil ||
		err.Error() != want.Error() {
		t.Errorf("object without name: error %v, want %v", err, want)
	}
	if err := tr.TrackObject(&corev1.ConfigMap{ObjectMeta: metaOf("ns", "a", nil)}, nil); err == nil {
		t.Error("no error for a nil observer")
	}
}
