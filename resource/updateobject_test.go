// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"trueup.dev/resource"
)

func TestUpdateObject(t *testing.T) {
	conflict := apierrs.NewConflict(myKind.GroupVersionResource().GroupResource(), "a", errors.New("test"))
	errTest := errors.New("failure of the test")
	add := func(obj *MyKind, _ bool) (*MyKind, error) { obj.Spec.Replicas++; return obj, nil }
	tests := map[string]struct {
		reason   string
		id       resource.Identifier
		options  resource.UpdateOptions
		update   func(obj *MyKind, isRetry bool) (*MyKind, error)
		failures int // number of writes that fail before one succeeds
		wantErr  func(error) bool
		retries  []bool // the values of isRetry that update received
		writes   int
		replicas int32
	}{
		"First": {reason: "no other client writes", update: add, retries: []bool{false}, writes: 1, replicas: 2},
		"Conflict": {
			reason:   "a conflict is retried",
			update:   add,
			failures: 2,
			retries:  []bool{false, true, true},
			writes:   3,
			replicas: 2,
		},
		"Exhausted": {
			reason:   "the number of retries is limited",
			update:   add,
			failures: 3,
			retries:  []bool{false, true, true},
			writes:   3,
			wantErr:  apierrs.IsConflict,
			replicas: 1,
		},
		"NoRetries": {
			reason: "retries can be disabled", update: add, failures: 1, options: resource.UpdateOptions{Retries: new(0)},
			retries: []bool{false}, writes: 1, wantErr: apierrs.IsConflict, replicas: 1,
		},
		"ManyRetries": {
			reason:   "the number of retries can be increased",
			update:   add,
			failures: 4,
			options:  resource.UpdateOptions{Retries: new(4)},
			retries:  []bool{false, true, true, true, true},
			writes:   5,
			replicas: 2,
		},
		"Status": {
			reason:   "a subresource is written",
			options:  resource.UpdateOptions{Subresource: resource.SubresourceStatus},
			failures: 1,
			retries:  []bool{false, true},
			writes:   2,
			replicas: 1,
			update:   func(obj *MyKind, _ bool) (*MyKind, error) { obj.Status.Replicas = 5; return obj, nil },
		},
		"NoChange": {
			reason: "update changes nothing", retries: []bool{false}, replicas: 1,
			update: func(obj *MyKind, _ bool) (*MyKind, error) { return obj, nil },
		},
		"Missing": {reason: "the object does not exist", id: id("b"), update: add, wantErr: apierrs.IsNotFound, replicas: 1},
		"Fails": {
			reason:   "errors are returned",
			wantErr:  func(err error) bool { return errors.Is(err, errTest) },
			retries:  []bool{false},
			replicas: 1,
			update:   func(*MyKind, bool) (*MyKind, error) { return nil, errTest },
		},
		"Nil": {
			reason: "update must return an object", retries: []bool{false}, replicas: 1,
			update:  func(*MyKind, bool) (*MyKind, error) { return nil, nil },
			wantErr: func(err error) bool { return strings.Contains(err.Error(), "must return an object") },
		},
		"OtherVersion": {
			reason: "update must return the object it received", retries: []bool{false}, replicas: 1,
			update:  func(obj *MyKind, _ bool) (*MyKind, error) { obj.ResourceVersion += "0"; return obj, nil },
			wantErr: func(err error) bool { return strings.Contains(err.Error(), "different resource version") },
		},
		"NoVersion": {
			reason: "update must return the object it received", retries: []bool{false}, replicas: 1,
			update:  func(*MyKind, bool) (*MyKind, error) { return newMyKind("a"), nil },
			wantErr: func(err error) bool { return errors.Is(err, resource.ErrMissingResourceVersion) },
		},
		"OtherName": {
			reason: "update must return the object it received", retries: []bool{false}, replicas: 1,
			update:  func(obj *MyKind, _ bool) (*MyKind, error) { obj.Name = "b"; return obj, nil },
			wantErr: func(err error) bool { return strings.Contains(err.Error(), `the object's name is "b"`) },
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			writes := 0
			write := func(write func() error) error {
				if writes++; writes <= tt.failures {
					return conflict
				}
				return write()
			}
			live := newCluster(t, interceptor.Funcs{
				Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
					return write(func() error { return c.Update(ctx, obj, opts...) })
				},
				SubResourceUpdate: func(
					ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption,
				) error {
					return write(func() error { return c.SubResource(sub).Update(ctx, obj, opts...) })
				},
			}, newMyKind("a", func(o *MyKind) { o.Spec.Replicas = 1 }))
			// The content of the cache must not matter.
			cached := &old{Client: live, cache: newCluster(t, interceptor.Funcs{})}
			store := newStore[*MyKind](t, myKind, resource.NewClientGenerator(cached, live))
			if tt.id.Name == "" {
				tt.id = id("a")
			}
			var retries []bool
			got, err := resource.UpdateObject(t.Context(), store, tt.id, func(obj *MyKind, isRetry bool) (*MyKind, error) {
				retries = append(retries, isRetry)
				return tt.update(obj, isRetry)
			}, tt.options)
			if (err != nil) != (tt.wantErr != nil) || err != nil && !tt.wantErr(err) {
				t.Fatalf("%s: error %v", tt.reason, err)
			}
			if diff := cmp.Diff(tt.retries, retries); diff != "" {
				t.Errorf("%s: retries (-want +got):\n%s", tt.reason, diff)
			}
			if writes != tt.writes {
				t.Errorf("%s: %d writes, want %d", tt.reason, writes, tt.writes)
			}
			stored := must[*MyKind](t)(store.Get(t.Context(), id("a"), resource.Live))
			if stored.Spec.Replicas != tt.replicas {
				t.Errorf("%s: stored %d, want %d", tt.reason, stored.Spec.Replicas, tt.replicas)
			}
			if err != nil && got != nil {
				t.Errorf("%s: returned %v with an error", tt.reason, got)
			}
			if diff := cmp.Diff(stored, got); err == nil && diff != "" {
				t.Errorf("%s: the result differs from the stored object (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}
