// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"trueup.dev/resource"
)

// TestTypedStore_writes tests each verb in success and failure, and checks the result, the stored object, and that the
// argument is unchanged.
func TestTypedStore_writes(t *testing.T) {
	type store = *resource.TypedStore[*MyKind]
	changed := func(o *MyKind) { o.Spec.SomeInfo, o.Status.Replicas, o.Spec.Tags = "changed", 9, []string{"x"} }
	unnamed := func(o *MyKind) { o.Namespace, o.Name = "", "" }
	// In the argument of a case, "@" is the resource version of the stored object.
	version := func(v string) func(*MyKind) { return func(o *MyKind) { o.ResourceVersion = v } }
	tests := map[string]struct {
		reason   string
		stored   []client.Object
		arg      *MyKind
		call     func(ctx context.Context, s store, arg *MyKind) (*MyKind, error)
		wantErr  func(error) bool
		wantInfo string
		replicas int32
	}{
		"Add": {
			reason: "the object is created", arg: newMyKind("a", changed), wantInfo: "changed", replicas: 9,
			call: func(ctx context.Context, s store, arg *MyKind) (*MyKind, error) { return s.Add(ctx, arg) },
		},
		"AddExisting": {
			reason:   "the object exists",
			stored:   []client.Object{newMyKind("a")},
			arg:      newMyKind("a", changed),
			wantErr:  apierrs.IsAlreadyExists,
			wantInfo: "some",
			call:     func(ctx context.Context, s store, arg *MyKind) (*MyKind, error) { return s.Add(ctx, arg) },
		},
		"Update": {
			reason:   "the status is unchanged",
			stored:   []client.Object{newMyKind("a")},
			arg:      newMyKind("a", changed, version("@")),
			wantInfo: "changed",
			call:     func(ctx context.Context, s store, arg *MyKind) (*MyKind, error) { return s.Update(ctx, id("a"), arg) },
		},
		"UpdateUnnamed": {
			reason:   "name and namespace come from the identifier",
			stored:   []client.Object{newMyKind("a")},
			arg:      newMyKind("a", changed, version("@"), unnamed),
			wantInfo: "changed",
			call:     func(ctx context.Context, s store, arg *MyKind) (*MyKind, error) { return s.Update(ctx, id("a"), arg) },
		},
		"UpdateConflict": {
			reason:   "the object is outdated",
			stored:   []client.Object{newMyKind("a")},
			arg:      newMyKind("a", changed, version("1")),
			wantErr:  apierrs.IsConflict,
			wantInfo: "some",
			call:     func(ctx context.Context, s store, arg *MyKind) (*MyKind, error) { return s.Update(ctx, id("a"), arg) },
		},
		"UpdateStatus": {
			reason:   "the spec is unchanged",
			stored:   []client.Object{newMyKind("a")},
			arg:      newMyKind("a", changed, version("@")),
			wantInfo: "some",
			replicas: 9,
			call: func(ctx context.Context, s store, arg *MyKind) (*MyKind, error) {
				return s.UpdateSubresource(ctx, id("a"), resource.SubresourceStatus, arg)
			},
		},
		"UpdateStatusConflict": {
			reason:   "the object is outdated",
			stored:   []client.Object{newMyKind("a")},
			arg:      newMyKind("a", changed, version("1")),
			wantErr:  apierrs.IsConflict,
			wantInfo: "some",
			call: func(ctx context.Context, s store, arg *MyKind) (*MyKind, error) {
				return s.UpdateSubresource(ctx, id("a"), resource.SubresourceStatus, arg)
			},
		},
		"UpsertNew": {
			reason: "the object is created", arg: newMyKind("a", changed, unnamed), wantInfo: "changed", replicas: 9,
			call: func(ctx context.Context, s store, arg *MyKind) (*MyKind, error) { return s.Upsert(ctx, id("a"), arg) },
		},
		"UpsertExisting": {
			reason:   "the object is replaced",
			stored:   []client.Object{newMyKind("a")},
			arg:      newMyKind("a", changed),
			wantInfo: "changed",
			call:     func(ctx context.Context, s store, arg *MyKind) (*MyKind, error) { return s.Upsert(ctx, id("a"), arg) },
		},
		"UpsertVersion": {
			reason:   "the object is current",
			stored:   []client.Object{newMyKind("a")},
			arg:      newMyKind("a", changed, version("@")),
			wantInfo: "changed",
			call:     func(ctx context.Context, s store, arg *MyKind) (*MyKind, error) { return s.Upsert(ctx, id("a"), arg) },
		},
		"UpsertConflict": {
			reason:   "the object is outdated",
			stored:   []client.Object{newMyKind("a")},
			arg:      newMyKind("a", changed, version("1")),
			wantErr:  apierrs.IsConflict,
			wantInfo: "some",
			call:     func(ctx context.Context, s store, arg *MyKind) (*MyKind, error) { return s.Upsert(ctx, id("a"), arg) },
		},
		"UpsertGone": {
			reason: "the object no longer exists", arg: newMyKind("a", changed, version("1")), wantInfo: "changed", replicas: 9,
			call: func(ctx context.Context, s store, arg *MyKind) (*MyKind, error) { return s.Upsert(ctx, id("a"), arg) },
		},
		"Merge": {
			reason:   "changed fields are written",
			stored:   []client.Object{newMyKind("a", func(o *MyKind) { o.Spec.OtherInfo = "other" })},
			arg:      newMyKind("a", func(o *MyKind) { o.Spec.SomeInfo = "changed" }),
			wantInfo: "changed other",
			call: func(ctx context.Context, s store, arg *MyKind) (*MyKind, error) {
				return s.Merge(ctx, newMyKind("a"), arg)
			},
		},
		"Patch": {
			reason:   "the patch is written",
			stored:   []client.Object{newMyKind("a", func(o *MyKind) { o.Spec.OtherInfo = "other" })},
			wantInfo: "changed other",
			call: func(ctx context.Context, s store, _ *MyKind) (*MyKind, error) {
				return s.Patch(ctx, id("a"), types.MergePatchType, []byte(`{"spec":{"someInfo":"changed"}}`))
			},
		},
		"PatchMissing": {
			reason: "the object does not exist", wantErr: apierrs.IsNotFound,
			call: func(ctx context.Context, s store, _ *MyKind) (*MyKind, error) {
				return s.Patch(ctx, id("a"), types.MergePatchType, []byte(`{}`))
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := newCluster(t, interceptor.Funcs{}, tt.stored...)
			s := newStore[*MyKind](t, myKind, resource.NewClientGenerator(cluster, nil))
			if tt.arg != nil && tt.arg.ResourceVersion == "@" {
				tt.arg.ResourceVersion = must[*MyKind](t)(s.Get(t.Context(), id("a"))).ResourceVersion
			}
			if tt.arg != nil {
				defer unchanged(t, tt.arg)()
			}
			got, err := tt.call(t.Context(), s, tt.arg)
			if (err != nil) != (tt.wantErr != nil) || err != nil && !tt.wantErr(err) {
				t.Fatalf("%s: error %v", tt.reason, err)
			}
			stored, rerr := s.Get(t.Context(), id("a"))
			if tt.wantInfo == "" {
				if !apierrs.IsNotFound(rerr) {
					t.Errorf("%s: stored %v, %v", tt.reason, stored, rerr)
				}
				return
			}
			if err == nil {
				if diff := cmp.Diff(stored, got); diff != "" {
					t.Errorf("%s: the result differs from the stored object (-want +got):\n%s", tt.reason, diff)
				}
				if got == tt.arg {
					t.Errorf("%s: the argument was returned", tt.reason)
				}
			} else if got != nil {
				t.Errorf("%s: returned %v with an error", tt.reason, got)
			}
			info := stored.Spec.SomeInfo
			if stored.Spec.OtherInfo != "" {
				info += " " + stored.Spec.OtherInfo
			}
			if info != tt.wantInfo || stored.Status.Replicas != tt.replicas {
				t.Errorf("%s: stored %q and %d, want %q and %d", tt.reason, info, stored.Status.Replicas, tt.wantInfo, tt.replicas)
			}
			if len(stored.Annotations) > 0 {
				t.Errorf("%s: unrequested fields were written: %v", tt.reason, stored.Annotations)
			}
		})
	}
}

func TestTypedStore_Add_generateName(t *testing.T) {
	s := newStore[*MyKind](t, myKind, resource.NewClientGenerator(newCluster(t, interceptor.Funcs{}), nil))
	arg := newMyKind("", func(o *MyKind) { o.GenerateName = "my-" })
	defer unchanged(t, arg)()
	got := must[*MyKind](t)(s.Add(t.Context(), arg))
	if len(got.Name) <= len("my-") {
		t.Errorf("name is %q", got.Name)
	}
}

// An Upsert that conflicts retries with the object on the API server, not with the one in the cache.
func TestTypedStore_Upsert_races(t *testing.T) {
	conflict := apierrs.NewConflict(myKind.GroupVersionResource().GroupResource(), "a", errors.New("test"))
	tests := map[string]struct {
		reason   string
		cached   []client.Object
		stored   []client.Object
		failures int // of updates
		writes   []string
		wantErr  func(error) bool
	}{
		"CreatedMeanwhile": {
			reason: "the object is not in the cache yet",
			stored: []client.Object{newMyKind("a")},
			writes: []string{"create", "update"},
		},
		"DeletedMeanwhile": {
			reason: "the object is still in the cache",
			cached: []client.Object{newMyKind("a")},
			writes: []string{"update", "create"},
		},
		"Fresh": {
			reason: "the cache is current",
			cached: []client.Object{newMyKind("a")},
			stored: []client.Object{newMyKind("a")},
			writes: []string{"update"},
		},
		"Contended": {
			reason:   "other clients write as well",
			stored:   []client.Object{newMyKind("a")},
			cached:   []client.Object{newMyKind("a")},
			failures: 2,
			writes:   []string{"update", "update", "update"},
		},
		"Hopeless": {
			reason:   "other clients write all the time",
			stored:   []client.Object{newMyKind("a")},
			cached:   []client.Object{newMyKind("a")},
			failures: 9,
			writes:   []string{"update", "update", "update"},
			wantErr:  apierrs.IsConflict,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			writes, failures := []string{}, tt.failures
			live := newCluster(t, interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
					writes = append(writes, "create")
					return c.Create(ctx, obj, opts...)
				},
				Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
					writes = append(writes, "update")
					if failures--; failures >= 0 {
						return conflict
					}
					return c.Update(ctx, obj, opts...)
				},
			}, tt.stored...)
			cached := &old{Client: live, cache: newCluster(t, interceptor.Funcs{}, tt.cached...)}
			s := newStore[*MyKind](t, myKind, resource.NewClientGenerator(cached, live))
			got, err := s.Upsert(t.Context(), id("a"), newMyKind("a", func(o *MyKind) { o.Spec.SomeInfo = "mine" }))
			if (err != nil) != (tt.wantErr != nil) || err != nil && !tt.wantErr(err) {
				t.Fatalf("%s: error %v", tt.reason, err)
			}
			if err == nil && got.Spec.SomeInfo != "mine" {
				t.Errorf("%s: stored %v", tt.reason, got)
			}
			if diff := cmp.Diff(tt.writes, writes); diff != "" {
				t.Errorf("%s: writes (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestTypedStore_Delete(t *testing.T) {
	s := newStore[*MyKind](
		t, myKind, resource.NewClientGenerator(newCluster(t, interceptor.Funcs{}, newMyKind("a"), newMyKind("b")), nil),
	)
	for _, name := range []string{"a", "b"} {
		if err := s.Delete(t.Context(), id(name)); err != nil {
			t.Error(err)
		}
		if _, err := s.Get(t.Context(), id(name)); !apierrs.IsNotFound(err) {
			t.Errorf("%s still exists: %v", name, err)
		}
	}
	if err := s.Delete(t.Context(), id("a")); !apierrs.IsNotFound(err) ||
		err.Error() != fmt.Sprintf(`delete MyKind "ns/a": mykinds.%s "a" not found`, group) {
		t.Errorf("error %v, want not found", err)
	}
	if err := s.ForceDelete(t.Context(), id("a")); err != nil {
		t.Error(err)
	}
}
