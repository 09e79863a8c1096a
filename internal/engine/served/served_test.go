// SPDX-License-Identifier: Apache-2.0

package served

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var guest = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Guest"}

func TestIsTheKindServed(t *testing.T) {
	resource := func(name, kind string, verbs ...string) metav1.APIResource {
		return metav1.APIResource{Name: name, Kind: kind, Verbs: verbs}
	}
	for name, tc := range map[string]struct {
		list *metav1.APIResourceList
		need Need
		want bool
	}{
		"the version is not served": {},
		"another kind": {list: &metav1.APIResourceList{APIResources: []metav1.APIResource{
			resource("hosts", "Host", "list", "create", "delete"),
		}}},
		"a subresource of the kind": {list: &metav1.APIResourceList{APIResources: []metav1.APIResource{
			resource("hosts/guest", "Guest", "list", "create"),
		}}},
		"the definition is being deleted": {list: &metav1.APIResourceList{APIResources: []metav1.APIResource{
			resource("guests", "Guest", "delete", "deletecollection", "get", "list", "watch"),
		}}},
		"the definition is being deleted, with finalizers": {
			list: &metav1.APIResourceList{APIResources: []metav1.APIResource{
				resource("guests", "Guest", "delete", "deletecollection", "get", "list", "watch"),
			}}, need: ToFinalize, want: true,
		},
		"a kind that can only be read": {want: true, list: &metav1.APIResourceList{APIResources: []metav1.APIResource{
			resource("guests", "Guest", "get", "list"),
		}}},
		"all verbs": {want: true, list: &metav1.APIResourceList{APIResources: []metav1.APIResource{
			resource("guests", "Guest", "create", "delete", "get", "list", "watch"),
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := serves(tc.list, guest.Kind, tc.need); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

// A read that waits for an informer ends when the kind is no longer served.
func TestReadsDoNotWaitForAKindThatIsNotServed(t *testing.T) {
	other := errors.New("other")
	waits, began := false, make(chan struct{}, 1)
	kinds := &Kinds{}
	reader := servedClient{fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, _ client.WithWatch, _ client.ObjectList, _ ...client.ListOption) error {
			if began <- struct{}{}; waits {
				<-ctx.Done()
				return ctx.Err()
			}
			return other
		},
	}).Build(), kinds}
	read := func(gvk schema.GroupVersionKind) error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		err := reader.List(t.Context(), list)
		select {
		case <-began:
		default:
		}
		return err
	}
	expect := func(when string, got error, unserved bool) {
		t.Helper()
		if meta.IsNoMatchError(got) != unserved || !unserved && !errors.Is(got, other) {
			t.Errorf("%s: got %v", when, got)
		}
	}
	expect("without a gate", read(guest), false)
	kinds.apply(t.Context(), map[schema.GroupVersionKind]bool{guest: true})
	expect("a kind that is served", read(guest), false)

	waits = true
	result := make(chan error)
	go func() { result <- read(guest) }()
	<-began
	kinds.apply(t.Context(), map[schema.GroupVersionKind]bool{guest: false})
	expect("a read that waited", <-result, true)
	waits = false
	expect("a kind that is not served", read(guest), true)
	expect("another kind", read(guest.GroupVersion().WithKind("Host")), false)
	kinds.apply(t.Context(), map[schema.GroupVersionKind]bool{guest: true})
	expect("a kind that is served again", read(guest), false)
}

// removals records which informers are removed.
type removals struct {
	cache.Cache
	forms []string
}

func (r *removals) RemoveInformer(_ context.Context, obj client.Object) error {
	r.forms = append(r.forms, fmt.Sprintf("%T %s", obj, obj.GetObjectKind().GroupVersionKind().Kind))
	return nil
}

// The informers of a kind are removed in each form, also if its Go type belongs to several kinds.
func TestInformersAreRemoved(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, kind := range []string{"Guest", "Host"} {
		scheme.AddKnownTypeWithName(guest.GroupVersion().WithKind(kind), &corev1.ConfigMap{})
	}
	removed := &removals{}
	kinds := &Kinds{gates: []*member{{
		cluster: Cluster{Cache: removed, Client: fake.NewClientBuilder().WithScheme(scheme).Build()},
		kinds:   map[schema.GroupVersionKind]Need{guest: ToCreate},
	}}}
	kinds.removeInformers(t.Context(), guest)
	want := []string{"*unstructured.Unstructured Guest", "*v1.PartialObjectMetadata Guest", "*v1.ConfigMap Guest"}
	if diff := cmp.Diff(want, removed.forms); diff != "" {
		t.Errorf("removed informers (-want +got):\n%s", diff)
	}
}
