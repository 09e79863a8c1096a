// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

const (
	probeLabel   = "trueup.dev/webhook-probe"
	probeWebhook = "probe.sandbox.trueup.dev"
)

// webhookRegistrar registers and unregisters the webhooks of one test.
type webhookRegistrar struct {
	client    dynamic.Interface
	rest      rest.Interface
	webhooks  *Webhooks
	namespace string
	cluster   string
	test      string
	undos     []func(ctx context.Context) error
}

func newWebhookRegistrar(e *Env, w *Webhooks, test string) (*webhookRegistrar, error) {
	config := e.RESTConfig()
	config.WarningHandler = rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	discoveryClient, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return &webhookRegistrar{
		client:    client,
		rest:      discoveryClient.RESTClient(),
		webhooks:  w,
		namespace: e.Namespace,
		cluster:   config.Host,
		test:      test,
	}, nil
}

// undo removes all registrations in reverse order.
func (r *webhookRegistrar) undo(ctx context.Context) error {
	var errs []error
	for i := len(r.undos) - 1; i >= 0; i-- {
		errs = append(errs, r.undos[i](ctx))
	}
	return errors.Join(errs...)
}

// clientConfig returns the client configuration with which the API server reaches a path of the test.
func (r *webhookRegistrar) clientConfig(path string) map[string]any {
	return map[string]any{"url": r.webhooks.URL(path), "caBundle": base64.StdEncoding.EncodeToString(r.webhooks.CABundle)}
}

// register creates a configuration and returns when the API server uses it.
func (r *webhookRegistrar) register(ctx context.Context, c webhookConfiguration, allNamespaces bool) error {
	object := c.object.DeepCopy()
	object.SetName(object.GetName() + "." + r.namespace)
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[testLabel] = strings.TrimSuffix(namespacePrefix(r.test), "-")
	object.SetLabels(labels)

	probe := rand.String(suffixLength * 2)
	webhooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
	if err != nil {
		return err
	}
	for _, w := range webhooks {
		w := w.(map[string]any)
		clientConfig, _, _ := unstructured.NestedMap(w, "clientConfig")
		w["clientConfig"] = r.clientConfig(pathOf(clientConfig))
		if allNamespaces {
			continue
		}
		expressions, _, err := unstructured.NestedSlice(w, "namespaceSelector", "matchExpressions")
		if err != nil {
			return err
		}
		expressions = append(expressions, r.inNamespace())
		if err := unstructured.SetNestedSlice(w, expressions, "namespaceSelector", "matchExpressions"); err != nil {
			return err
		}
	}
	if err := unstructured.SetNestedSlice(object.Object, append(webhooks, r.probe(probe)), "webhooks"); err != nil {
		return err
	}

	resource := strings.ToLower(object.GetKind()) + "s"
	configurations := r.client.Resource(admissionregistrationv1.SchemeGroupVersion.WithResource(resource))
	options := metav1.CreateOptions{FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict}
	if _, err := configurations.Create(ctx, object, options); err != nil {
		return err
	}
	r.undos = append(r.undos, func(ctx context.Context) error {
		err := configurations.Delete(ctx, object.GetName(), metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	return r.awaitUse(ctx, probe)
}

func (r *webhookRegistrar) inNamespace() map[string]any {
	return map[string]any{
		"key":      corev1.LabelMetadataName,
		"operator": string(metav1.LabelSelectorOpIn),
		"values":   []any{r.namespace},
	}
}

// probe returns a webhook that is only called for ConfigMaps with a label that awaitUse sets.
func (r *webhookRegistrar) probe(value string) map[string]any {
	return map[string]any{
		"name":         probeWebhook,
		"clientConfig": r.clientConfig("/" + probeWebhook),
		"rules": []any{map[string]any{
			"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"},
			"operations": []any{string(admissionregistrationv1.Create)},
		}},
		"namespaceSelector":       map[string]any{"matchExpressions": []any{r.inNamespace()}},
		"objectSelector":          map[string]any{"matchLabels": map[string]any{probeLabel: value}},
		"admissionReviewVersions": []any{"v1"},
		"sideEffects":             string(admissionregistrationv1.SideEffectClassNone),
		"failurePolicy":           string(admissionregistrationv1.Fail),
		"timeoutSeconds":          int64(1),
	}
}

// awaitUse waits until the API server calls the webhooks of a configuration, which it reads from a cache. A dry run
// fails then, because no server listens before Env.Webhooks returns.
func (r *webhookRegistrar) awaitUse(ctx context.Context, probe string) error {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "webhook-probe", "labels": map[string]any{probeLabel: probe}},
	}}
	configMaps := r.client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(r.namespace)
	return poll(ctx, func() (bool, error) {
		_, err := configMaps.Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		switch {
		case err == nil:
			return false, errors.New("the API server does not call the webhooks yet")
		case strings.Contains(err.Error(), "failed calling webhook"):
			return true, nil
		}
		return true, err
	})
}
