// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"trueup.dev/resource"
)

// foreignTheme is a kind with the same name in another group, without a Go type.
func foreignTheme(version string) resource.Kind {
	return resource.Kind{Schema: resource.NewSimpleSchema("other.trueup.dev", version,
		&unstructured.Unstructured{}, &unstructured.UnstructuredList{}, resource.WithKind("Theme"))}
}

func TestStore_Kind(t *testing.T) {
	clients := resource.NewClientGenerator(newCluster(t, interceptor.Funcs{}), nil)
	store := must[*resource.Store](t)(
		resource.NewStore(clients, []resource.Kind{myKind, theme, configMap, foreignTheme("v1"), foreignTheme("v2")}),
	)
	tests := map[string]struct {
		name, want, wantErr string
	}{
		"Kind":         {name: "MyKind", want: "MyKind.v1.resource.trueup.dev"},
		"Group":        {name: "MyKind.resource.trueup.dev", want: "MyKind.v1.resource.trueup.dev"},
		"Full":         {name: myKind.String(), want: "MyKind.v1.resource.trueup.dev"},
		"Core":         {name: "ConfigMap", want: "ConfigMap.v1"},
		"CoreFull":     {name: configMap.String(), want: "ConfigMap.v1"},
		"GroupOfTwo":   {name: "Theme.resource.trueup.dev", want: "Theme.v1.resource.trueup.dev"},
		"VersionOfTwo": {name: "Theme.v2.other.trueup.dev", want: "Theme.v2.other.trueup.dev"},
		"Ambiguous": {
			name: "Theme",
			wantErr: "several kinds with the name Theme in the store: " +
				"Theme.v1.other.trueup.dev, Theme.v1.resource.trueup.dev, Theme.v2.other.trueup.dev",
		},
		"AmbiguousVersion": {
			name: "Theme.other.trueup.dev",
			wantErr: "several kinds with the name Theme.other.trueup.dev in the store: " +
				"Theme.v1.other.trueup.dev, Theme.v2.other.trueup.dev",
		},
		"Unknown": {
			name: "YourKind",
			wantErr: "no kind with the name YourKind in the store; " +
				"available kinds: ConfigMap.v1, MyKind.v1.resource.trueup.dev, ",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			kind, err := store.Kind(tt.name)
			if tt.wantErr != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tt.wantErr) {
					t.Errorf("error %v, want %s", err, tt.wantErr)
				}
				return
			}
			if err != nil || kind.Kind().String() != tt.want {
				t.Errorf("kind %v, %v, want %s", kind, err, tt.want)
			}
		})
	}
}

func TestNewStore_problems(t *testing.T) {
	clients := resource.NewClientGenerator(newCluster(t, interceptor.Funcs{}), nil)
	store, err := resource.NewStore(clients, []resource.Kind{myKind, {}, myKind})
	if err == nil || store != nil || !strings.Contains(err.Error(), "kind must define Schema") ||
		!strings.Contains(err.Error(), "is listed twice") {
		t.Errorf("store %v, error %v", store, err)
	}
}

func TestStore(t *testing.T) {
	clients := resource.NewClientGenerator(newCluster(t, interceptor.Funcs{}), nil)
	store := must[*resource.Store](t)(
		resource.NewStore(clients, []resource.Kind{myKind, theme, foreignTheme("v1"), foreignTheme("v2")}),
	)
	ctx, object := t.Context(), must[resource.Object](t)

	a := object(store.Add(ctx, newMyKind("a"))).(*MyKind)
	a.Spec.SomeInfo = "updated"
	a = object(store.Update(ctx, id("a"), a)).(*MyKind)
	a.Status.Replicas = 2
	object(store.UpdateSubresource(ctx, "MyKind", id("a"), resource.SubresourceStatus, a))
	object(store.Patch(ctx, "MyKind", id("a"), types.MergePatchType, []byte(`{"spec":{"otherInfo":"patched"}}`)))
	a = object(store.Get(ctx, "MyKind", id("a"), resource.Live)).(*MyKind)
	if a.Spec.SomeInfo != "updated" || a.Spec.OtherInfo != "patched" || a.Status.Replicas != 2 {
		t.Errorf("stored %+v %+v", a.Spec, a.Status)
	}
	object(store.Upsert(ctx, resource.Identifier{Name: "dark"}, &Theme{Spec: ThemeSpec{Color: "black"}}))
	foreign := foreignTheme("v1").ZeroValue()
	object(store.Upsert(ctx, id("foreign"), foreign))

	for kind, want := range map[string][]string{
		"MyKind": {"a"}, theme.String(): {"dark"}, foreignTheme("v1").String(): {"foreign"},
	} {
		list := must[*resource.TypedList[resource.Object]](t)(store.List(ctx, kind, resource.StoreListOptions{}))
		if diff := cmp.Diff(want, names(list.Items)); diff != "" {
			t.Errorf("list of %s (-want +got):\n%s", kind, diff)
		}
		all := []resource.Object{}
		for obj, err := range store.All(ctx, kind, resource.StoreListOptions{}) {
			all = append(all, object(obj, err))
		}
		if diff := cmp.Diff(want, names(all)); diff != "" {
			t.Errorf("all of %s (-want +got):\n%s", kind, diff)
		}
	}

	if err := store.Delete(ctx, "MyKind", id("a")); err != nil {
		t.Error(err)
	}
	if err := store.ForceDelete(ctx, "MyKind", id("a")); err != nil {
		t.Error(err)
	}
	if _, err := store.Get(ctx, "MyKind", id("a")); !apierrs.IsNotFound(err) {
		t.Errorf("error %v, want not found", err)
	}
}

func TestStore_refuses(t *testing.T) {
	clients := resource.NewClientGenerator(newCluster(t, interceptor.Funcs{}), nil)
	store := must[*resource.Store](t)(
		resource.NewStore(clients, []resource.Kind{theme, foreignTheme("v1"), foreignTheme("v2")}),
	)
	ctx := t.Context()
	stranger := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	nameless := &unstructured.Unstructured{}
	var ranged error
	for _, err := range store.All(ctx, "MyKind", resource.StoreListOptions{}) {
		ranged = err
	}
	tests := map[string]struct {
		err  error
		want string
	}{
		"Add":         {drop(store.Add(ctx, nil)), "object must not be nil"},
		"AddStranger": {drop(store.Add(ctx, stranger)), "no kind with the Go type *v1.ConfigMap in the store"},
		"AddNameless": {
			drop(store.Add(ctx, nameless)),
			"several kinds with the Go type *unstructured.Unstructured in the store",
		},
		"Update": {drop(store.Update(ctx, id("a"), newMyKind("a"))), "no kind with the Go type"},
		"Upsert": {
			drop(store.Upsert(ctx, id("a"), myKind.ZeroValue())),
			"no kind resource.trueup.dev/v1, Kind=MyKind in the store",
		},
		"UpdateSubresource": {
			drop(store.UpdateSubresource(ctx, "MyKind", id("a"), "status", stranger)),
			"no kind with the name MyKind",
		},
		"Patch":       {drop(store.Patch(ctx, "MyKind", id("a"), "", nil)), "no kind with the name MyKind"},
		"Get":         {drop(store.Get(ctx, "MyKind", id("a"))), "no kind with the name MyKind"},
		"List":        {drop(store.List(ctx, "MyKind", resource.StoreListOptions{})), "no kind with the name MyKind"},
		"All":         {ranged, "no kind with the name MyKind"},
		"Delete":      {store.Delete(ctx, "MyKind", id("a")), "no kind with the name MyKind"},
		"ForceDelete": {store.ForceDelete(ctx, "MyKind", id("a")), "no kind with the name MyKind"},
	}
	for name, tt := range tests {
		if tt.err == nil || !strings.HasPrefix(tt.err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %s", name, tt.err, tt.want)
		}
	}
}
