// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
)

func TestDiscovery(t *testing.T) {
	c := kubernetes.NewForConfigOrDie(configOf(t, "one")).Discovery()
	groups, err := restmapper.GetAPIGroupResources(c)
	if err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	for _, tt := range []struct {
		kind schema.GroupKind
		want schema.GroupVersionResource
	}{
		{schema.GroupKind{Kind: "Pod"}, corev1.SchemeGroupVersion.WithResource("pods")},
		{schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupVersionResource{
			Group: "apps", Version: "v1", Resource: "deployments",
		}},
		{schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}, schema.GroupVersionResource{
			Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers",
		}},
	} {
		mapping, err := mapper.RESTMapping(tt.kind)
		if err != nil {
			t.Errorf("%s: %v", tt.kind, err)
			continue
		}
		if diff := cmp.Diff(tt.want, mapping.Resource); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.kind, diff)
		}
	}
	version, err := c.ServerVersion()
	if err != nil || version.Major != "1" {
		t.Errorf("version = %v, %v", version, err)
	}
	if _, err := c.ServerResourcesForGroupVersion("example.com/v1"); err == nil {
		t.Error("want an error for a group that does not exist")
	}
}

// TestInformer runs an informer of client-go.
func TestInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		c := kubernetes.NewForConfigOrDie(configOf(t, "one"))
		maps := c.CoreV1().ConfigMaps("one")
		if _, err := maps.Create(ctx, configMap("a", nil), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		var events []string
		factory := informers.NewSharedInformerFactoryWithOptions(c, 0, informers.WithNamespace("one"))
		informer := factory.Core().V1().ConfigMaps().Informer()
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(obj any) { events = append(events, "add "+obj.(*corev1.ConfigMap).Name) },
			UpdateFunc: func(_, obj any) {
				events = append(events, "update "+obj.(*corev1.ConfigMap).Name+" "+obj.(*corev1.ConfigMap).Data["a"])
			},
			DeleteFunc: func(obj any) { events = append(events, "delete "+obj.(*corev1.ConfigMap).Name) },
		}); err != nil {
			t.Fatal(err)
		}
		factory.Start(ctx.Done())
		factory.WaitForCacheSync(ctx.Done())
		if _, err := maps.Update(ctx, configMap("a", map[string]string{"a": "1"}), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := maps.Create(ctx, configMap("b", nil), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := maps.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // of virtual time
		synctest.Wait()
		want := []string{"add a", "update a 1", "add b", "delete a"}
		if diff := cmp.Diff(want, events); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		stop()
		factory.Shutdown()
	})
}
