// SPDX-License-Identifier: Apache-2.0

package simple_test

import (
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/resource"
	"trueup.dev/simple"
)

// Every call fails before the app exists, and succeeds afterwards.
func TestClientsBeforeAndAfterTheApp(t *testing.T) {
	e := newEnv(t)
	accountKind := resource.Kind{
		Schema: resource.NewSimpleSchema(
			"", "v1", &corev1.ServiceAccount{}, &corev1.ServiceAccountList{}, resource.WithKind("ServiceAccount"),
		),
	}
	clients := &simple.Clients{}
	c, err := clients.ClientFor(widgetKind)
	e.Must(err)
	accounts, err := clients.ClientFor(accountKind)
	e.Must(err)
	live, err := clients.LiveReaderFor(widgetKind)
	e.Must(err)

	widget := newWidget("it", "one")
	widget.Namespace = e.Namespace
	key := client.ObjectKeyFromObject(widget)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "it"}}
	e.Must(e.Create(t.Context(), account))
	patch := func(path string) client.Patch {
		return client.RawPatch("application/merge-patch+json", []byte(`{"`+path+`":{"applied":"patched"}}`))
	}
	applied := func(part string) runtime.ApplyConfiguration {
		return client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": group + "/v1", "kind": "Widget", "metadata": map[string]any{"namespace": e.Namespace, "name": "it"},
			part: map[string]any{"applied": "applied"},
		}})
	}
	calls := []struct {
		name string
		call func() error
	}{
		{"Create", func() error { return c.Create(t.Context(), widget) }},
		{"Get live", func() error { return live.Get(t.Context(), key, widget) }},
		{"List live", func() error { return live.List(t.Context(), &WidgetList{}, client.InNamespace(e.Namespace)) }},
		{"Update", func() error { return c.Update(t.Context(), widget) }},
		{"Patch", func() error { return c.Patch(t.Context(), widget, patch("spec")) }},
		{"Apply", func() error {
			return c.Apply(t.Context(), applied("spec"), client.FieldOwner("it"), client.ForceOwnership)
		}},
		{"Get of the status", func() error { return c.SubResource("status").Get(t.Context(), widget, widget) }},
		{"Update of the status", func() error { return c.Status().Update(t.Context(), widget) }},
		{"Patch of the status", func() error { return c.Status().Patch(t.Context(), widget, patch("status")) }},
		{"Apply of the status", func() error {
			return c.Status().Apply(t.Context(), applied("status"), client.FieldOwner("it"), client.ForceOwnership)
		}},
		{"Create of a token", func() error {
			return accounts.SubResource("token").Create(t.Context(), account, &authenticationv1.TokenRequest{})
		}},
		{"List", func() error { return c.List(t.Context(), &WidgetList{}, client.InNamespace(e.Namespace)) }},
		{"Delete", func() error { return c.Delete(t.Context(), widget) }},
		{"DeleteAllOf", func() error { return c.DeleteAllOf(t.Context(), &Widget{}, client.InNamespace(e.Namespace)) }},
		{"IsObjectNamespaced", func() error {
			namespaced, err := c.IsObjectNamespaced(widget)
			if err == nil && !namespaced {
				t.Error("a widget is namespaced before the app exists")
			}
			return err
		}},
	}
	for _, call := range calls {
		if err := call.call(); err == nil || !strings.Contains(err.Error(), "has not been made yet") {
			t.Errorf("%s before the app exists: %v", call.name, err)
		}
	}
	if !c.Scheme().Recognizes(widgetKind.GroupVersionKind()) {
		t.Error("the scheme does not have the kind before the app exists")
	}
	if _, err := c.RESTMapper().RESTMapping(widgetKind.GroupKind()); err == nil {
		t.Error("the mapper has the kind before the app exists")
	}

	config := e.config("later")
	config.Clients = clients
	config.UnmanagedKinds = []simple.AppUnmanagedKind{{Kind: configMapKind, Watcher: &simple.Watcher{}}}
	made := e.make(config)
	e.run(made)
	<-made.Manager().Elected()
	for _, call := range calls {
		e.Must(call.call())
	}
	if c.Scheme() != made.Manager().GetScheme() {
		t.Error("the scheme is not that of the app")
	}
	if _, err := c.RESTMapper().RESTMapping(widgetKind.GroupKind()); err != nil {
		t.Errorf("the mapper does not know the kind: %v", err)
	}
	if gvk, err := c.GroupVersionKindFor(widget); err != nil || gvk != widgetKind.GroupVersionKind() {
		t.Errorf("a widget is a %s, error %v", gvk, err)
	}
}
