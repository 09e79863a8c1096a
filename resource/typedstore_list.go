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

// DefaultPerPage is the number of objects that a store requests from the API server at a time, unless
// [StoreListOptions] set another number.
const DefaultPerPage = 500

// StoreListOptions select what a store lists. The zero value selects all objects.
type StoreListOptions struct {
	// Namespace selects the objects of one namespace. Default: objects of all.
	Namespace string
	// LabelFilters are label selectors, for example "app=web" or "tier in (a,b)", all of which must match. Default: none.
	LabelFilters []string
	// FieldSelectors are field selectors, for example "metadata.name=web", all of which must match. A cache can select
	// only by indexed fields. Default: none.
	FieldSelectors []string
	// PerPage is the number of objects that are requested from the API server at a time. A cache ignores it. Default:
	// [DefaultPerPage].
	PerPage int
	// Source is where to read from. Default: the source of the store.
	Source ReadSource
}

// listOptions returns the options in the type that clients use.
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

// List returns all objects that the options select, with the metadata of the last page.
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

// All ranges over the objects that the options select, and holds one page at a time. It ends after an error.
//
// All pages show the same state of the cluster as long as the API server keeps it, usually five minutes. A range that
// takes longer continues with a newer state. It never returns an object twice.
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

// pages ranges over lists. It ends after an error.
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
			// Caches always return a continue token, and then reject it.
			if !yield(page, nil) || options.Limit == 0 || page.GetContinue() == "" {
				return
			}
			options.Continue = page.GetContinue()
		}
	}
}

// freshToken returns the continue token that the API server offers if the previous one has expired.
func freshToken(err error) string {
	if status := apierrs.APIStatus(nil); apierrs.IsResourceExpired(err) && errors.As(err, &status) {
		return status.Status().Continue
	}
	return ""
}

func (s *TypedStore[T]) failedList(err error) error {
	return fmt.Errorf("list %s: %w", s.kind.Kind(), err)
}
