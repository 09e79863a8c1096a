// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"trueup.dev/resource"
	"trueup.dev/simple"
)

// region migration-app-sdk-aliases
func WidgetKind(kind resource.Kind, watcher *simple.Watcher) simple.AppManagedKind {
	return simple.AppManagedKind{
		Kind:    kind,
		Watcher: watcher,
		ReconcileOptions: simple.ReconcileOptions{
			FinalizerAliases: []string{"myapp-widgets-finalizer", "myapp-wip"},
		},
	}
}

// endregion

// What the guide shows is a valid config: only the cluster is missing.
func TestMigratedKind(t *testing.T) {
	kind := resource.Kind{Schema: resource.NewSimpleSchema("", "v1", &corev1.ConfigMap{}, &corev1.ConfigMapList{})}
	_, err := simple.NewApp(simple.AppConfig{Name: "myapp", KubeConfig: rest.Config{Host: "127.0.0.1:1"}, ManagedKinds: []simple.AppManagedKind{WidgetKind(kind, &simple.Watcher{})}})
	if err == nil || strings.Contains(err.Error(), "invalid config") {
		t.Errorf("NewApp = %v", err)
	}
}
