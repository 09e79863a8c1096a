// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"trueup.dev/resource"
)

// noClients returns no client for any kind, and no error.
type noClients struct{ client resource.Client }

func (c noClients) ClientFor(resource.Kind) (resource.Client, error) { return c.client, nil }

// nilPointer is a client type that is used as a nil pointer.
type nilPointer struct{ client.Client }

func TestNewTypedStore_ClientForReturnsNilWithoutAnError(t *testing.T) {
	for name, clients := range map[string]noClients{"nil": {}, "a nil pointer": {(*nilPointer)(nil)}} {
		t.Run(name, func(t *testing.T) {
			_, err := resource.NewTypedStore[*MyKind](myKind, clients)
			const want = "ClientFor of resource_test.noClients must return a client or an error"
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error = %v, want %q", err, want)
			}
			if _, err := resource.NewStore(clients, []resource.Kind{myKind}); err == nil ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("NewStore: error = %v, want %q", err, want)
			}
		})
	}
}

func TestUpdateObject_WithoutStoreOrFunction(t *testing.T) {
	store := newStore[*MyKind](
		t, myKind, resource.NewClientGenerator(newCluster(t, interceptor.Funcs{}, newMyKind("a")), nil),
	)
	update := func(obj *MyKind, _ bool) (*MyKind, error) { return obj, nil }
	for name, tc := range map[string]struct {
		store  *resource.TypedStore[*MyKind]
		update func(*MyKind, bool) (*MyKind, error)
		want   string
	}{
		"no store":    {update: update, want: `update "ns/a": UpdateObject must have a store`},
		"no function": {store: store, want: `update MyKind "ns/a": UpdateObject must have an update function`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := resource.UpdateObject(t.Context(), tc.store, id("a"), tc.update, resource.UpdateOptions{})
			if err == nil || err.Error() != tc.want {
				t.Errorf("error = %v, want %s", err, tc.want)
			}
		})
	}
}
