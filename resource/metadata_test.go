// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/resource"
)

func TestIdentifier(t *testing.T) {
	for want, id := range map[string]resource.Identifier{
		"ns/name": {Namespace: "ns", Name: "name"},
		"name":    {Name: "name"},
	} {
		if id.String() != want {
			t.Errorf("%#v is %q, want %q", id, id, want)
		}
		if back := resource.Identifier(id.NamespacedName()); back != id {
			t.Errorf("%v was converted to %v", id, back)
		}
	}
	if key := id("a").NamespacedName(); key != (types.NamespacedName{Namespace: "ns", Name: "a"}) {
		t.Errorf("key is %v", key)
	}
	if got := resource.IdentifierOf(newMyKind("a")); got != id("a") {
		t.Errorf("identifier of the object is %v", got)
	}
}

func TestStaticMetadata(t *testing.T) {
	obj := newMyKind("a")
	obj.SetGroupVersionKind(myKind.GroupVersionKind())
	metadata := obj.GetStaticMetadata()
	want := resource.StaticMetadata{Group: group, Version: "v1", Kind: "MyKind", Namespace: "ns", Name: "a"}
	if diff := cmp.Diff(want, metadata); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	full := resource.FullIdentifier{Namespace: "ns", Name: "a", Group: group, Version: "v1", Kind: "MyKind"}
	if diff := cmp.Diff(full, metadata.FullIdentifier()); diff != "" {
		t.Errorf("full identifier (-want +got):\n%s", diff)
	}
	full.Plural = "mykinds"
	if diff := cmp.Diff(full, myKind.FullIdentifier(id("a"))); diff != "" {
		t.Errorf("full identifier of the kind (-want +got):\n%s", diff)
	}
	if metadata.Identifier() != id("a") || full.Identifier() != id("a") {
		t.Errorf("identifiers are %v and %v", metadata.Identifier(), full.Identifier())
	}
	if metadata.GroupVersionKind() != myKind.GroupVersionKind() || full.GroupVersionKind() != myKind.GroupVersionKind() {
		t.Errorf("kinds are %v and %v", metadata.GroupVersionKind(), full.GroupVersionKind())
	}
	nameOnly := &Theme{ObjectMeta: metav1.ObjectMeta{Name: "dark"}}
	if got := nameOnly.GetStaticMetadata(); got != (resource.StaticMetadata{Name: "dark"}) {
		t.Errorf("metadata of an object without a kind: %v", got)
	}
}

func TestCommonMetadata(t *testing.T) {
	created, deleted := metav1.Now(), metav1.NewTime(time.Now().Add(time.Hour))
	obj := &Theme{ObjectMeta: metav1.ObjectMeta{
		UID:               "1",
		ResourceVersion:   "2",
		Generation:        3,
		Labels:            map[string]string{"a": "b"},
		CreationTimestamp: created,
		Finalizers:        []string{"c"},
	}}
	want := resource.CommonMetadata{
		UID:               "1",
		ResourceVersion:   "2",
		Generation:        3,
		Labels:            map[string]string{"a": "b"},
		CreationTimestamp: created.Time,
		Finalizers:        []string{"c"},
	}
	got := obj.GetCommonMetadata()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	got.Labels["a"], got.Finalizers[0] = "changed", "changed"
	if obj.Labels["a"] != "b" || obj.Finalizers[0] != "c" {
		t.Error("the metadata is not a copy")
	}
	other := newMyKind("a")
	other.DeletionTimestamp = &deleted
	if got := other.GetCommonMetadata().DeletionTimestamp; !got.Equal(deleted.Time) || got == &deleted.Time {
		t.Errorf("deleted at %v, want a copy of %v", got, deleted)
	}
}
