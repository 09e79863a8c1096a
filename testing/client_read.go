// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/call"
)

func (w *clientWrapper) list(ctx context.Context, c *call.Call) error {
	action, err := w.listAction("list", c.List, c.ListOptions)
	if err != nil {
		return err
	}
	return w.call(action, c.List, func() error { return c.Do(ctx, w.client) })
}

// Watch implements [client.WithWatch]. Reactors cannot answer it.
func (w *clientWrapper) Watch(
	ctx context.Context, list client.ObjectList, opts ...client.ListOption,
) (watch.Interface, error) {
	action, err := w.listAction("watch", list, opts)
	if err != nil {
		return nil, err
	}
	var watching watch.Interface
	err = w.call(action, nil, func() (err error) {
		watcher, ok := w.client.(client.WithWatch)
		if !ok {
			return fmt.Errorf("%T cannot watch", w.client)
		}
		watching, err = watcher.Watch(ctx, list, opts...)
		return err
	})
	if err == nil && watching == nil {
		return nil, fmt.Errorf("a reactor answers watch %s, which is not possible", action.GetResource().Resource)
	}
	return watching, err
}

func (w *clientWrapper) listAction(
	verb string, list client.ObjectList, opts []client.ListOption,
) (clientgotesting.ListActionImpl, error) {
	gvk, err := w.client.GroupVersionKindFor(list)
	if err != nil {
		return clientgotesting.ListActionImpl{}, err
	}
	if !strings.HasSuffix(gvk.Kind, "List") {
		// an unstructured list may have the kind of its items
		gvk.Kind += "List"
	}
	options := (&client.ListOptions{}).ApplyOptions(opts)
	action := clientgotesting.ListActionImpl{
		Kind: gvk, ListRestrictions: restrictions(options), ListOptions: *options.AsListOptions(),
	}
	action.Verb, action.Resource, action.Namespace = verb, resourceOf(gvk), options.Namespace
	return action, nil
}

// restrictions returns the selectors of options, none of them nil.
func restrictions(options *client.ListOptions) clientgotesting.ListRestrictions {
	r := clientgotesting.ListRestrictions{Labels: options.LabelSelector, Fields: options.FieldSelector}
	if r.Labels == nil {
		r.Labels = labels.Everything()
	}
	if r.Fields == nil {
		r.Fields = fields.Everything()
	}
	return r
}
