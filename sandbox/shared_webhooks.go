// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// checkShared returns an error that lists what in o would also affect other test binaries that share the control plane.
func (o *WebhookOptions) checkShared(e *Env, configurations []webhookConfiguration) error {
	if _, isShared := e.server.(*lease); !isShared {
		return nil
	}
	client, err := discovery.NewDiscoveryClientForConfig(e.RESTConfig())
	if err != nil {
		return err
	}
	var errs []error
	if len(o.Conversions) > 0 {
		errs = append(errs, errors.New("field Conversions: other test binaries use the same definitions"))
	}
	for _, c := range configurations {
		webhooks, err := unselective(c.object)
		if err != nil {
			return fmt.Errorf("%s: %w", c.origin, err)
		}
		for _, w := range webhooks {
			if o.AllNamespaces {
				errs = append(errs, fmt.Errorf("field AllNamespaces: %s: webhook %s has no objectSelector", c.origin, w.Name))
				continue
			}
			resource, err := clusterScoped(client, w)
			if err != nil {
				return fmt.Errorf("%s: webhook %s: %w", c.origin, w.Name, err)
			}
			if resource != "" {
				errs = append(errs, fmt.Errorf(
					"field Configurations: %s: webhook %s is called for the cluster-scoped %s of other test binaries", c.origin,
					w.Name, resource,
				))
			}
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf(
		"sandbox: other test binaries share the control plane; set TestOptions.Private to use another: %w",
		errors.Join(errs...),
	)
}

// unselective returns the webhooks of a configuration without an object selector.
func unselective(object *unstructured.Unstructured) ([]admissionregistrationv1.ValidatingWebhook, error) {
	var c admissionregistrationv1.ValidatingWebhookConfiguration // a mutating one has the fields that are used here, too
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &c); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(c.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool {
		return !selectsAll(w.ObjectSelector)
	}), nil
}

func selectsAll(s *metav1.LabelSelector) bool {
	return s == nil || len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0
}

// clusterScoped returns a cluster-scoped resource that a webhook is called for, or "".
func clusterScoped(client discovery.DiscoveryInterface, w admissionregistrationv1.ValidatingWebhook) (string, error) {
	for _, rule := range w.Rules {
		if rule.Scope != nil && *rule.Scope == admissionregistrationv1.NamespacedScope {
			continue
		}
		for _, group := range rule.APIGroups {
			for _, version := range rule.APIVersions {
				resource, err := clusterScopedIn(client, schema.GroupVersion{Group: group, Version: version}, rule.Resources)
				if resource != "" || err != nil {
					return resource, err
				}
			}
		}
	}
	return "", nil
}

func clusterScopedIn(
	client discovery.DiscoveryInterface, version schema.GroupVersion, resources []string,
) (string, error) {
	const all = "*"
	if version.Group == all || version.Version == all {
		return "resources of " + version.String(), nil
	}
	list, err := client.ServerResourcesForGroupVersion(version.String())
	if apierrors.IsNotFound(err) {
		return "", nil // no requests either
	}
	if err != nil {
		return "", err
	}
	for _, r := range list.APIResources {
		// The selector of a webhook applies to namespaces themselves.
		if r.Namespaced || version.Group == corev1.GroupName && strings.HasPrefix(r.Name, "namespaces") {
			continue
		}
		if slices.Contains(resources, r.Name) || slices.Contains(resources, all) || slices.Contains(resources, "*/*") {
			return r.Name, nil
		}
	}
	return "", nil
}

// unselectiveConfiguration returns the name of a webhook configuration for the objects of all namespaces, or "".
func unselectiveConfiguration(ctx context.Context, config *rest.Config) (string, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return "", err
	}
	for _, kind := range []string{mutatingKind, validatingKind} {
		resource := admissionregistrationv1.SchemeGroupVersion.WithResource(strings.ToLower(kind) + "s")
		configurations, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		for _, c := range configurations.Items {
			webhooks, err := unselective(&c)
			if err != nil {
				return "", err
			}
			for _, w := range webhooks {
				if selectsAll(w.NamespaceSelector) {
					return c.GetName(), nil
				}
			}
		}
	}
	return "", nil
}
