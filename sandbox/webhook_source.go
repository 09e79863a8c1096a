// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"net/url"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	mutatingKind   = "MutatingWebhookConfiguration"
	validatingKind = "ValidatingWebhookConfiguration"
)

// webhookConfiguration is a MutatingWebhookConfiguration or a ValidatingWebhookConfiguration and its origin.
type webhookConfiguration struct {
	origin string
	object *unstructured.Unstructured
}

var webhookParser = &parser[webhookConfiguration]{
	what: "webhook configurations",
	want: "*MutatingWebhookConfiguration, []*MutatingWebhookConfiguration, *ValidatingWebhookConfiguration, " +
		"[]*ValidatingWebhookConfiguration",
	version: admissionregistrationv1.SchemeGroupVersion,
	objects: func(src any) ([]runtime.Object, bool) {
		switch src := src.(type) {
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			return []runtime.Object{src}, true
		case []*admissionregistrationv1.MutatingWebhookConfiguration:
			return asObjects(src), true
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			return []runtime.Object{src}, true
		case []*admissionregistrationv1.ValidatingWebhookConfiguration:
			return asObjects(src), true
		}
		return nil, false
	},
	parse: newWebhookConfiguration,
}

// readWebhookConfigurations returns the configurations in sources, validating ones first. Requests that a mutating
// webhook rejects do not reach validating webhooks, so only this order shows whether each of them is in use.
func readWebhookConfigurations(sources []any) ([]webhookConfiguration, error) {
	all, err := webhookParser.readAll(sources)
	if err != nil {
		return nil, err
	}
	if len(sources) > 0 && len(all) == 0 {
		return nil, fmt.Errorf("the sources contain no %s and no %s", mutatingKind, validatingKind)
	}
	slices.SortStableFunc(all, func(a, b webhookConfiguration) int {
		return rank(a) - rank(b)
	})
	return all, nil
}

func rank(c webhookConfiguration) int {
	if c.object.GetKind() == validatingKind {
		return 0
	}
	return 1
}

func newWebhookConfiguration(origin string, object map[string]any) (webhookConfiguration, error) {
	c := webhookConfiguration{origin: origin, object: &unstructured.Unstructured{Object: object}}
	gvk := schema.FromAPIVersionAndKind(c.object.GetAPIVersion(), c.object.GetKind())
	if gvk.Group != admissionregistrationv1.GroupName || gvk.Kind != mutatingKind && gvk.Kind != validatingKind {
		return c, errOtherKind
	}
	if want := admissionregistrationv1.SchemeGroupVersion; gvk.GroupVersion() != want {
		return c, fmt.Errorf("%s: apiVersion %q: want %s", origin, c.object.GetAPIVersion(), want)
	}
	if c.object.GetName() == "" {
		return c, fmt.Errorf("%s: metadata.name is required", origin)
	}
	webhooks, _, err := unstructured.NestedSlice(object, "webhooks")
	if err != nil {
		return c, fmt.Errorf("%s: %w", origin, err)
	}
	if len(webhooks) == 0 {
		return c, fmt.Errorf("%s: webhooks: at least one is required", origin)
	}
	for i, w := range webhooks {
		if _, ok := w.(map[string]any); !ok {
			return c, fmt.Errorf("%s: webhooks[%d]: want an object, got %T", origin, i, w)
		}
	}
	for _, field := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"} {
		unstructured.RemoveNestedField(object, "metadata", field)
	}
	c.origin = fmt.Sprintf("%s (%s)", origin, c.object.GetName())
	return c, nil
}

// pathOf returns the path in a client configuration, or "".
func pathOf(clientConfig map[string]any) string {
	if path, _, _ := unstructured.NestedString(clientConfig, "service", "path"); path != "" {
		return path
	}
	text, _, _ := unstructured.NestedString(clientConfig, "url")
	parsed, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return parsed.Path
}
