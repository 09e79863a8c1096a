// SPDX-License-Identifier: Apache-2.0

package duck_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/duck"
)

const (
	createRefused = "Create is not supported for the duck typed objects"
	updateRefused = "Update is not supported for the duck typed objects, use Patch instead"
)

func TestDelete(t *testing.T) {
	remaining := func(t *testing.T, c client.Reader) []string {
		t.Helper()
		list := &appsv1.DeploymentList{}
		if err := c.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		names := []string{}
		for _, item := range list.Items {
			names = append(names, item.Name)
		}
		return names
	}
	tests := map[string]struct {
		delete func(ctx context.Context, c client.Client) error
		want   []string
	}{
		"Delete": {
			delete: func(ctx context.Context, c client.Client) error { return c.Delete(ctx, scalable("a")) },
			want:   []string{"b", "c"},
		},
		"DeleteAllOf": {
			delete: func(ctx context.Context, c client.Client) error {
				return c.DeleteAllOf(ctx, scalable(""), client.InNamespace("ns"), client.MatchingLabels{"app": "b"})
			},
			want: []string{"a", "c"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			plain := cluster(whole("a"), whole("b"), whole("c"))
			if err := tt.delete(t.Context(), duck.NewDuckAwareClientWrapper(plain)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, remaining(t, plain)); diff != "" {
				t.Errorf("remaining (-want +got):\n%s", diff)
			}
		})
	}

	t.Run("Missing", func(t *testing.T) {
		err := duck.NewDuckAwareClientWrapper(cluster()).Delete(t.Context(), scalable("a"))
		if !apierrors.IsNotFound(err) {
			t.Errorf("error %v, want not found", err)
		}
	})
}

func TestRefused(t *testing.T) {
	plain := cluster(whole("a"))
	clients := map[string]client.Client{
		"Aware":     duck.NewDuckAwareClientWrapper(plain),
		"Dangerous": duck.NewDangerousDuckAwareClientWrapper(plain),
	}
	body := &appsv1.Deployment{}
	tests := map[string]struct {
		do   func(ctx context.Context, c client.Client) error
		want string
		also bool // rejected by the dangerous client as well
	}{
		"Create": {
			func(ctx context.Context, c client.Client) error { return c.Create(ctx, scalable("b")) },
			createRefused,
			false,
		},
		"Update": {
			func(ctx context.Context, c client.Client) error { return c.Update(ctx, scalable("a")) },
			updateRefused,
			false,
		},
		"Status().Create": {func(ctx context.Context, c client.Client) error {
			return c.Status().Create(ctx, scalable("a"), body)
		}, createRefused, true},
		"Status().Update": {func(ctx context.Context, c client.Client) error {
			return c.Status().Update(ctx, scalable("a"))
		}, updateRefused, true},
		"SubResource().Create": {func(ctx context.Context, c client.Client) error {
			return c.SubResource("scale").Create(ctx, scalable("a"), body)
		}, createRefused, true},
		"SubResource().Update": {func(ctx context.Context, c client.Client) error {
			return c.SubResource("status").Update(ctx, scalable("a"))
		}, updateRefused, true},
	}
	for clientName, c := range clients {
		for name, tt := range tests {
			if clientName == "Dangerous" && !tt.also {
				continue // TestDangerous
			}
			t.Run(clientName+"/"+name, func(t *testing.T) {
				err := tt.do(t.Context(), c)
				if diff := cmp.Diff(tt.want, fmt.Sprint(err)); diff != "" {
					t.Errorf("error (-want +got):\n%s", diff)
				}
			})
		}
	}
	if diff := cmp.Diff(whole("a"), mustGet(t, plain, "a"), ignoreVersion); diff != "" {
		t.Errorf("a rejected call changed the object (-want +got):\n%s", diff)
	}
}

func TestDangerous(t *testing.T) {
	plain := cluster(whole("a"))
	c := duck.NewDangerousDuckAwareClientWrapper(plain)

	created := scalable("b")
	created.Spec.Replicas = new(int32(2))
	if err := c.Create(t.Context(), created); err != nil {
		t.Fatal(err)
	}
	if created.ResourceVersion == "" {
		t.Error("the duck lacks the fields that the server added to the created object")
	}
	if diff := cmp.Diff(new(int32(2)), mustGet(t, plain, "b").Spec.Replicas); diff != "" {
		t.Errorf("created replicas (-want +got):\n%s", diff)
	}

	updated := scalable("a")
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(updated), updated); err != nil {
		t.Fatal(err)
	}
	version := updated.ResourceVersion
	updated.Spec.Replicas = new(int32(3))
	if err := c.Update(t.Context(), updated); err != nil {
		t.Fatal(err)
	}
	if updated.ResourceVersion == version {
		t.Error("the duck lacks the resource version of the update")
	}
	got := mustGet(t, plain, "a")
	if diff := cmp.Diff(new(int32(3)), got.Spec.Replicas); diff != "" {
		t.Errorf("updated replicas (-want +got):\n%s", diff)
	}
	if got.Spec.Paused {
		t.Error("an update kept a field that the duck does not have; then Update is not dangerous")
	}
}

// stuck is a duck that cannot be converted.
type stuck struct {
	Scalable `json:",inline"`
	Channel  chan int `json:"channel"`
}

func (s *stuck) DeepCopyObject() runtime.Object { return s }

// stuckList is a duck list that cannot be converted.
type stuckList struct {
	ScalableList `json:",inline"`
	Channel      chan int `json:"channel"`
}

func (s *stuckList) DeepCopyObject() runtime.Object { return s }

// If a duck cannot be converted, no call may reach the cluster.
func TestConversionErrors(t *testing.T) {
	obj := &stuck{Scalable: *scalable("a"), Channel: make(chan int)}
	list := &stuckList{ScalableList: ScalableList{TypeMeta: deploymentList}, Channel: make(chan int)}
	raw := client.RawPatch("application/merge-patch+json", []byte("{}"))
	const unconvertible = "unable to convert from object: "

	tests := map[string]struct {
		do   func(ctx context.Context, c client.WithWatch) error
		want string
	}{
		"Get": {
			func(ctx context.Context, c client.WithWatch) error { return c.Get(ctx, client.ObjectKey{}, obj) },
			unconvertible,
		},
		"List": {func(ctx context.Context, c client.WithWatch) error { return c.List(ctx, list) }, unconvertible},
		"Watch": {
			func(ctx context.Context, c client.WithWatch) error { _, err := c.Watch(ctx, list); return err },
			unconvertible,
		},
		"Create": {func(ctx context.Context, c client.WithWatch) error { return c.Create(ctx, obj) }, unconvertible},
		"Update": {func(ctx context.Context, c client.WithWatch) error { return c.Update(ctx, obj) }, unconvertible},
		"Delete": {func(ctx context.Context, c client.WithWatch) error { return c.Delete(ctx, obj) }, unconvertible},
		"DeleteAllOf": {
			func(ctx context.Context, c client.WithWatch) error { return c.DeleteAllOf(ctx, obj) },
			unconvertible,
		},
		"Patch": {func(ctx context.Context, c client.WithWatch) error { return c.Patch(ctx, obj, raw) }, unconvertible},
		"PatchData": {func(ctx context.Context, c client.WithWatch) error {
			return c.Patch(ctx, obj, client.MergeFrom(obj))
		}, "json: unsupported type"},
		"Status().Patch": {
			func(ctx context.Context, c client.WithWatch) error { return c.Status().Patch(ctx, obj, raw) },
			unconvertible,
		},
		"Status().PatchData": {func(ctx context.Context, c client.WithWatch) error {
			return c.Status().Patch(ctx, obj, client.MergeFrom(obj))
		}, "json: unsupported type"},
		"SubResource().Get": {func(ctx context.Context, c client.WithWatch) error {
			return c.SubResource("scale").Get(ctx, obj, &appsv1.Deployment{})
		}, unconvertible},
		"IsObjectNamespaced": {func(_ context.Context, c client.WithWatch) error {
			_, err := c.IsObjectNamespaced(obj)
			return err
		}, unconvertible},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := &recorder{}
			c := duck.NewDangerousDuckAwareClientWrapper(r.client()).(client.WithWatch)
			if err := tt.do(t.Context(), c); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("error %v, want prefix %q", err, tt.want)
			}
			if len(r.objects) != 0 {
				t.Errorf("the wrapped client received %v, want no calls", r.objects)
			}
		})
	}
}
