// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DefaultPerPage is how many objects a store asks the API server for at a time, unless [StoreListOptions] say otherwise.
const DefaultPerPage = 500

// StoreListOptions select what a store lists. The zero value selects all objects.
type StoreListOptions struct {
	// Namespace selects the objects of one namespace. Default: those of all.
	Namespace string
	// LabelFilters are label selectors, for example "app=web" or "tier in (a,b)", all of which must match. Default: none.
	LabelFilters []string
	// FieldSelectors are field selectors, for example "metadata.name=web", all of which must match. A cache can select only by fields it has an index for.
	// Default: none.
	FieldSelectors []string
	// PerPage is how many objects the API server is asked for at a time. A cache answers in one piece. Default: [DefaultPerPage].
	PerPage int
	// Source says where to read from. Default: that of the store.
	Source ReadSource
}

// listOptions returns the options as clients take them.
func (o StoreListOptions) listOptions() (*client.ListOptions, error) {
	labelSelector, err := labels.Parse(strings.Join(o.LabelFilters, ","))
	if err != nil {
		err = fmt.Errorf("invalid LabelFilters: %w", err)
	}
	fieldSelector, ferr := fields.ParseSelector(strings.Join(o.FieldSelectors, ","))
	if ferr != nil {
		ferr = fmt.Errorf("invalid FieldSelectors: %w", ferr)
	}
	if o.PerPage < 0 {
		err = errors.Join(err, fmt.Errorf("invalid PerPage %d: must not be negative", o.PerPage))
	}
	options := &client.ListOptions{Namespace: o.Namespace, LabelSelector: labelSelector}
	if ferr == nil && !fieldSelector.Empty() {
		options.FieldSelector = fieldSelector
	}
	return options, errors.Join(err, ferr)
}

// List returns all objects that the options select. Its metadata is that of the last page.
func (s *TypedStore[T]) List(ctx context.Context, options StoreListOptions) (*TypedList[T], error) {
	all := &TypedList[T]{Items: []T{}}
	all.SetGroupVersionKind(listKind(s.kind.GroupVersionKind()))
	for page, err := range s.pages(ctx, options) {
		if err != nil {
			return nil, err
		}
		all.ResourceVersion = page.GetResourceVersion()
		if err := s.eachItem(page, func(obj T) error { all.Items = append(all.Items, obj); return nil }); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// All ranges over the objects that the options select, of which it holds one page at a time. After an error it ends.
//
// Pages are of the same moment as long as the API server remembers it, usually five minutes. A range that takes longer goes on with objects as they are by
// then; it has no object twice.
func (s *TypedStore[T]) All(ctx context.Context, options StoreListOptions) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		for page, err := range s.pages(ctx, options) {
			if err != nil {
				yield(none, err)
				return
			}
			err := s.eachItem(page, func(obj T) error {
				if !yield(obj, nil) {
					return errEnough
				}
				return nil
			})
			if err != nil {
				if !errors.Is(err, errEnough) {
					yield(none, err)
				}
				return
			}
		}
	}
}

var errEnough = errors.New("the range has ended")

func (s *TypedStore[T]) eachItem(page ListObject, visit func(T) error) error {
	return meta.EachListItem(page, func(item runtime.Object) error { return visit(s.stored(item.(T))) })
}

// pages ranges over lists. After an error it ends.
func (s *TypedStore[T]) pages(ctx context.Context, o StoreListOptions) iter.Seq2[ListObject, error] {
	return func(yield func(ListObject, error) bool) {
		options, err := o.listOptions()
		if o.Namespace != "" {
			err = errors.Join(err, s.kind.checkNamespace(o.Namespace))
		}
		if err != nil {
			yield(nil, s.failedList(err))
			return
		}
		if o.Source == "" {
			o.Source = s.source
		}
		if o.Source == Live {
			options.Limit = DefaultPerPage
			if o.PerPage > 0 {
				options.Limit = int64(o.PerPage)
			}
		}
		for {
			page := s.kind.ZeroListValue()
			err := s.reader(o.Source).List(ctx, page, options)
			if token := freshToken(err); token != "" && token != options.Continue {
				options.Continue = token
				continue
			}
			if err != nil {
				yield(nil, s.failedList(err))
				return
			}
			// Caches always say that there is more, and then refuse to give it.
			if !yield(page, nil) || options.Limit == 0 || page.GetContinue() == "" {
				return
			}
			options.Continue = page.GetContinue()
		}
	}
}

// freshToken returns what the API server offers to go on with when it does not remember the moment of the pages before.
func freshToken(err error) string {
	if status := apierrs.APIStatus(nil); apierrs.IsResourceExpired(err) && errors.As(err, &status) {
		return status.Status().Continue
	}
	return ""
}

func (s *TypedStore[T]) failedList(err error) error {
	return fmt.Errorf("list %s: %w", s.kind.Kind(), err)
}
