// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"trueup.dev/resource"
)

var ignoreVersion = cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ResourceVersion")

// generator returns the configured errors.
type generator struct {
	client    client.Client
	err, live error
}

func (g generator) ClientFor(resource.Kind) (resource.Client, error)   { return g.client, g.err }
func (g generator) LiveReaderFor(resource.Kind) (client.Reader, error) { return g.client, g.live }

func TestNewTypedStore(t *testing.T) {
	cluster := newCluster(t, interceptor.Funcs{})
	foreign := fake.NewClientBuilder().Build()
	errTest := errors.New("failure of the test")
	tests := map[string]struct {
		reason  string
		clients resource.ClientGenerator
		opts    []resource.StoreOption
		want    []string
	}{
		"Valid": {reason: "valid arguments", clients: resource.NewClientGenerator(cluster, nil)},
		"NoGenerator": {
			reason: "a client generator is required",
			want:   []string{"the store of kind " + myKind.String() + " must have a ClientGenerator"},
		},
		"NoClient": {
			reason:  "a client is required",
			clients: resource.NewClientGenerator(nil, nil),
			want:    []string{"client generator must have a client"},
		},
		"ClientFails": {
			reason:  "errors are returned",
			clients: generator{err: errTest},
			want:    []string{"failure of the test"},
		},
		"ReaderFails": {
			reason:  "errors are returned",
			clients: generator{client: cluster, live: errTest},
			want:    []string{"failure of the test"},
		},
		"Source": {
			reason:  "the read source must be valid",
			clients: resource.NewClientGenerator(cluster, nil),
			opts:    []resource.StoreOption{resource.ReadSource("Oracle")},
			want:    []string{`invalid ReadSource "Oracle": must be one of ["Cached" "Live"]`},
		},
		"UnknownType": {
			reason:  "objects and lists must be registered in the scheme",
			clients: resource.NewClientGenerator(foreign, nil),
			want: []string{
				"the client does not know kind " + myKind.String(),
				"the client does not know the list of kind " + myKind.String(),
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			store, err := resource.NewTypedStore[*MyKind](myKind, tt.clients, tt.opts...)
			if (err == nil) != (len(tt.want) == 0) || (store == nil) != (err != nil) {
				t.Fatalf("%s: store %v, error %v", tt.reason, store, err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: want %q in %v", tt.reason, want, err)
				}
			}
		})
	}
	t.Run("OtherType", func(t *testing.T) {
		_, err := resource.NewTypedStore[*Theme](myKind, resource.NewClientGenerator(cluster, nil))
		if err == nil || !strings.Contains(err.Error(), "cannot hold *resource.TypedSpecObject[") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("OtherKind", func(t *testing.T) {
		kind := resource.Kind{
			Schema: resource.NewSimpleSchema(group, "v2", &MyKind{}, &MyKindList{}, resource.WithKind("MyKind")),
		}
		_, err := resource.NewTypedStore[*MyKind](kind, resource.NewClientGenerator(cluster, nil))
		if err == nil || strings.Count(err.Error(), "not as") != 2 {
			t.Errorf("error %v", err)
		}
	})
}

// drop returns the error of a call.
func drop[T any](_ T, err error) error { return err }

// Every verb rejects invalid arguments before it calls the API.
func TestTypedStore_refuses(t *testing.T) {
	forbidden := errors.New("the API was called")
	cluster := newCluster(t, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return forbidden
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return forbidden
		},
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return forbidden },
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return forbidden },
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return forbidden },
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return forbidden
		},
		SubResourceUpdate: func(
			context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption,
		) error {
			return forbidden
		},
	})
	clients := resource.NewClientGenerator(cluster, nil)
	mine, themes := newStore[*MyKind](t, myKind, clients), newStore[*Theme](t, theme, clients)
	anything := newStore[resource.Object](t, myKind, clients)
	ctx := t.Context()
	read := func(change ...func(*MyKind)) *MyKind {
		return newMyKind("a", append(change, func(o *MyKind) { o.ResourceVersion = "1" })...)
	}
	clusterID := resource.Identifier{Name: "dark"}
	tests := map[string]struct {
		reason string
		err    error
		want   []string
	}{
		"GetNothing": {
			"name and namespace are empty", drop(mine.Get(ctx, resource.Identifier{})),
			[]string{"get MyKind", "name is required", "namespace is required"},
		},
		"GetNamespaced": {
			"the kind is cluster-scoped",
			drop(themes.Get(ctx, id("dark"))),
			[]string{`get Theme "ns/dark"`, `namespace must be empty, got "ns"`},
		},
		"DeleteNothing": {
			"name and namespace are empty", mine.Delete(ctx, resource.Identifier{}),
			[]string{"delete MyKind", "name is required", "namespace is required"},
		},
		"ForceDelete": {"the namespace is empty", mine.ForceDelete(ctx, clusterID), []string{"namespace is required"}},
		"PatchNothing": {
			"name and namespace are empty",
			drop(mine.Patch(ctx, resource.Identifier{}, "", nil)),
			[]string{"patch MyKind", "name is required"},
		},
		"AddNil":     {"the object is nil", drop(mine.Add(ctx, nil)), []string{"add MyKind", "object must not be nil"}},
		"AddUnnamed": {"the name is empty", drop(mine.Add(ctx, newMyKind(""))), []string{"name is required"}},
		"AddNamespace": {
			"the namespace is empty", drop(mine.Add(ctx, newMyKind("a", func(o *MyKind) { o.Namespace = "" }))),
			[]string{"namespace is required"},
		},
		"UpdateNil": {
			"the object is nil",
			drop(mine.Update(ctx, id("a"), nil)),
			[]string{`update MyKind "ns/a"`, "object must not be nil"},
		},
		"UpdateOther": {
			"name and namespace differ", drop(mine.Update(ctx, resource.Identifier{Namespace: "x", Name: "b"}, read())),
			[]string{`name is "a"`, `namespace is "ns"`},
		},
		"UpdateVersion": {
			"it was not read",
			drop(mine.Update(ctx, id("a"), newMyKind("a"))),
			[]string{resource.ErrMissingResourceVersion.Error()},
		},
		"UpsertOther": {
			"the name differs",
			drop(mine.Upsert(ctx, id("b"), newMyKind("a"))),
			[]string{`upsert MyKind "ns/b"`, `name is "a"`},
		},
		"UpsertNil": {"the object is nil", drop(mine.Upsert(ctx, id("b"), nil)), []string{"object must not be nil"}},
		"StatusOther": {
			"the name differs", drop(mine.UpdateSubresource(ctx, id("b"), "status", read())),
			[]string{`update status of MyKind "ns/b"`, `name is "a"`},
		},
		"StatusVersion": {
			"it was not read", drop(mine.UpdateSubresource(ctx, id("a"), "status", newMyKind("a"))),
			[]string{resource.ErrMissingResourceVersion.Error()},
		},
		"StatusUnnamed": {
			"the subresource is empty",
			drop(mine.UpdateSubresource(ctx, id("a"), "", read())),
			[]string{"name of the subresource is required"},
		},
		"StatusNil": {
			"the object is nil",
			drop(mine.UpdateSubresource(ctx, id("a"), "status", nil)),
			[]string{"object must not be nil"},
		},
		"MergeNil": {
			"the object is nil",
			drop(mine.Merge(ctx, nil, read())),
			[]string{"merge MyKind", "object must not be nil"},
		},
		"MergeOther": {"the objects differ", drop(mine.Merge(ctx, newMyKind("b"), read())), []string{`name is "b"`}},
		"ApplyNil": {
			"the object is nil",
			drop(mine.Apply(ctx, nil, "me")),
			[]string{"apply MyKind", "object must not be nil"},
		},
		"ApplyUnnamed": {"the name is empty", drop(mine.Apply(ctx, newMyKind(""), "me")), []string{"name is required"}},
		"WrongType": {
			"the Go type differs",
			drop(anything.Update(ctx, id("a"), &corev1.ConfigMap{})),
			[]string{"the object is *v1.ConfigMap"},
		},
		"WrongKind": {
			"the kind of the object differs",
			drop(mine.Upsert(ctx, id("a"), read(func(o *MyKind) { o.Kind = "YourKind"; o.APIVersion = "a/v1" }))),
			[]string{"of kind a/v1, Kind=YourKind"},
		},
		"BodyOther": {
			"all problems are listed", drop(anything.UpdateSubresource(ctx, id("a"), "scale", &corev1.ConfigMap{})),
			[]string{`the subresource belongs to ""`, "resource version is required"},
		},
		"ListNamespace": {
			"the kind is cluster-scoped", drop(themes.List(ctx, resource.StoreListOptions{Namespace: "ns"})),
			[]string{"list Theme", `namespace must be empty, got "ns"`},
		},
		"ListSelectors": {
			"all problems are listed",
			drop(
				themes.List(
					ctx, resource.StoreListOptions{LabelFilters: []string{"a in"}, FieldSelectors: []string{"a"}, PerPage: -1},
				),
			),
			[]string{"invalid LabelFilters", "invalid FieldSelectors", "invalid PerPage -1"},
		},
		"ListWithoutErr": {
			"the API is called",
			drop(themes.List(ctx, resource.StoreListOptions{})),
			[]string{"list Theme: the API was called"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.err == nil {
				t.Fatalf("%s: no error", tt.reason)
			}
			if errors.Is(tt.err, forbidden) && name != "ListWithoutErr" {
				t.Errorf("%s: the API was called", tt.reason)
			}
			for _, want := range tt.want {
				if !strings.Contains(tt.err.Error(), want) {
					t.Errorf("%s: want %q in %v", tt.reason, want, tt.err)
				}
			}
		})
	}
}

func TestTypedStore_Get(t *testing.T) {
	stored := newMyKind("a", func(o *MyKind) { o.Status.Replicas = 3 })
	clients := resource.NewClientGenerator(newCluster(t, interceptor.Funcs{}, stored), nil)

	got := must[*MyKind](t)(newStore[*MyKind](t, myKind, clients).Get(t.Context(), id("a")))
	want := newMyKind("a", func(o *MyKind) { o.Status.Replicas = 3; o.SetGroupVersionKind(myKind.GroupVersionKind()) })
	if diff := cmp.Diff(want, got, ignoreVersion); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
	if got.GetStaticMetadata().Identifier() != id("a") || got.GetStaticMetadata().Kind != "MyKind" {
		t.Errorf("metadata %v", got.GetStaticMetadata())
	}
	_, err := newStore[*MyKind](t, myKind, clients).Get(t.Context(), id("b"))
	if !apierrs.IsNotFound(err) || !strings.HasPrefix(err.Error(), `get MyKind "ns/b": `) {
		t.Errorf("error %v, want not found", err)
	}
	u := must[*unstructured.Unstructured](t)(
		newStore[*unstructured.Unstructured](t, dynamic, clients).Get(t.Context(), id("a")),
	)
	if info, _, _ := unstructured.NestedString(u.Object, "spec", "someInfo"); info != "some" {
		t.Errorf("unstructured %v", u.Object)
	}
}

func TestTypedStore_readSource(t *testing.T) {
	cache := newCluster(t, interceptor.Funcs{}, newMyKind("a", func(o *MyKind) { o.Spec.SomeInfo = "old" }))
	live := newCluster(t, interceptor.Funcs{}, newMyKind("a", func(o *MyKind) { o.Spec.SomeInfo = "new" }))
	clients := resource.NewClientGenerator(&old{Client: live, cache: cache}, live)
	tests := map[string]struct {
		reason string
		opts   []resource.StoreOption
		from   []resource.ReadSource
		want   string
	}{
		"Default":   {reason: "reads are cached by default", want: "old"},
		"Live":      {reason: "one read is live", from: []resource.ReadSource{resource.Live}, want: "new"},
		"LiveStore": {reason: "all reads are live", opts: []resource.StoreOption{resource.Live}, want: "new"},
		"LiveStoreCached": {
			reason: "one read is cached",
			opts:   []resource.StoreOption{resource.Live},
			from:   []resource.ReadSource{resource.Cached},
			want:   "old",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			store := newStore[*MyKind](t, myKind, clients, tt.opts...)
			if got := must[*MyKind](t)(store.Get(t.Context(), id("a"), tt.from...)); got.Spec.SomeInfo != tt.want {
				t.Errorf("%s: got the %s", tt.reason, got.Spec.SomeInfo)
			}
			options := resource.StoreListOptions{}
			for _, source := range tt.from {
				options.Source = source
			}
			list := must[*resource.TypedList[*MyKind]](t)(store.List(t.Context(), options))
			if len(list.Items) != 1 || list.Items[0].Spec.SomeInfo != tt.want {
				t.Errorf("%s: listed %+v", tt.reason, list.Items)
			}
		})
	}
	store := newStore[*MyKind](t, myKind, clients)
	if store.Kind().Schema != myKind.Schema || store.Client() == nil {
		t.Errorf("kind %v, client %v", store.Kind(), store.Client())
	}
}
