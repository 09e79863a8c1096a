// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	pageSize       = 500
	servingTimeout = time.Minute
	servingPoll    = 100 * time.Millisecond
)

var (
	definitions = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
	widgets = schema.GroupVersionResource{Group: "measure.trueup.dev", Version: "v1", Resource: "widgets"}
)

// measureObjects creates objects of a custom resource, lists them, and starts the control plane again with them.
func (s settings) measureObjects(ctx context.Context, out io.Writer, dir string) (err error) {
	p, err := s.start(ctx, dir)
	if err != nil {
		return err
	}
	final, err := s.createObjects(ctx, out, p)
	if err = errors.Join(err, p.stop()); err != nil {
		return err
	}
	again, err := s.start(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, again.stop()) }()
	ready := time.Now()
	if err := again.awaitServing(ctx); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "ready after %s without objects, after %s with the kept directory, lists %s later\n",
		p.took.Round(time.Millisecond), again.took.Round(time.Millisecond), time.Since(ready).Round(time.Millisecond),
	); err != nil {
		return err
	}
	if err := again.reportLists(ctx, out, s.objects); err != nil {
		return err
	}
	return s.limits(final)
}

// createObjects returns the usage at the end.
func (s settings) createObjects(ctx context.Context, out io.Writer, p *process) (usage, error) {
	if err := p.install(ctx); err != nil {
		return usage{}, err
	}
	if err := p.report(ctx, out, "idle"); err != nil {
		return usage{}, err
	}
	idle, err := p.usage()
	if err != nil {
		return usage{}, err
	}
	create := func(ctx context.Context, i int) error {
		_, err := p.dynamic.Resource(widgets).Namespace(namespace).Create(ctx, widget(i), metav1.CreateOptions{})
		return err
	}
	if err := s.repeat(ctx, out, p, s.objects, "objects", create); err != nil {
		return usage{}, err
	}
	if err := p.reportLists(ctx, out, s.objects); err != nil {
		return usage{}, err
	}
	if err := s.profile(ctx, p); err != nil {
		return usage{}, err
	}
	final, err := s.observe(ctx, out, p)
	if err != nil {
		return usage{}, err
	}
	_, err = fmt.Fprintf(out, "each object: %.1f kB resident, %.1f kB on disk\n",
		float64(final.resident-idle.resident)/float64(s.objects)/1000, float64(final.disk-idle.disk)/float64(s.objects)/1000)
	return final, err
}

// install creates the definition and waits until it is served.
func (p *process) install(ctx context.Context) error {
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": widgets.Resource + "." + widgets.Group},
		"spec": map[string]any{
			"group": widgets.Group, "scope": "Namespaced",
			"names": map[string]any{"plural": widgets.Resource, "singular": "widget", "kind": "Widget"},
			"versions": []any{map[string]any{
				"name": widgets.Version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "x-kubernetes-preserve-unknown-fields": true,
				}},
			}},
		},
	}}
	if _, err := p.dynamic.Resource(definitions).Create(ctx, definition, metav1.CreateOptions{}); err != nil {
		return err
	}
	return p.awaitServing(ctx)
}

// awaitServing waits until objects are listed. The API server refuses that while it fills its cache of a resource.
func (p *process) awaitServing(ctx context.Context) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, servingPoll, servingTimeout, true, func(ctx context.Context) (bool, error) {
		_, last = p.dynamic.Resource(widgets).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: 1})
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%s are not served: %w", widgets.Resource, errors.Join(err, last))
	}
	return nil
}

// widget is an object as operators have them: labels, a few fields, a condition.
func widget(i int) *unstructured.Unstructured {
	name := fmt.Sprintf("widget-%07d", i)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": widgets.GroupVersion().String(), "kind": "Widget",
		"metadata": map[string]any{
			"name": name, "labels": map[string]any{"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "measure"},
		},
		"spec": map[string]any{
			"replicas": int64(3), "image": "registry.example.com/widget:1.2.3",
			"settings": map[string]any{"mode": "fast", "size": "large", "zone": "a"},
		},
		"status": map[string]any{"conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "reason": "AsExpected", "message": "all replicas are ready",
			"lastTransitionTime": "2030-01-01T00:00:00Z",
		}}},
	}}
}

// reportLists prints the time of a list at once and of one in pages.
func (p *process) reportLists(ctx context.Context, out io.Writer, want int) error {
	resource := p.dynamic.Resource(widgets).Namespace(namespace)
	begin := time.Now()
	list, err := resource.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	whole := time.Since(begin)
	if len(list.Items) != want {
		return fmt.Errorf("list has %d objects, want %d", len(list.Items), want)
	}
	begin = time.Now()
	listed := 0
	for options := (metav1.ListOptions{Limit: pageSize}); listed == 0 || options.Continue != ""; {
		page, err := resource.List(ctx, options)
		if err != nil {
			return err
		}
		listed += len(page.Items)
		options.Continue = page.GetContinue()
	}
	if listed != want {
		return fmt.Errorf("list in pages has %d objects, want %d", listed, want)
	}
	_, err = fmt.Fprintf(out, "list of %d objects: %s at once, %s in pages of %d\n", want,
		whole.Round(time.Millisecond), time.Since(begin).Round(time.Millisecond), pageSize)
	return err
}
