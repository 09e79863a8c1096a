// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"trueup.dev/duck"
	"trueup.dev/graph/rbac"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/reconcilers"
	"trueup.dev/testing/internal/fakeapi"
)

// ExpectConfig provides a [reconcilers.Config] for an API in memory, and asserts what is done with it: writes, events
// and tracked references. Each test case of this package has one. Use it directly to test functions that take a Config,
// and in the AdditionalConfigs of cases for further clusters of a reconciler.
//
// All expectations are positional: the first expected create is compared with the first observed create, and so on. An
// expected call that is not observed is a failure, and so is an observed call that is not expected. The order is
// asserted for calls of one field only: a create may precede or follow an update. Calls that fail are observed too.
//
// The Given fields, the scheme and the reactors are read by the first call of Config, all other fields by assertions. A
// copy of an ExpectConfig is independent if it was made before that call. The Config may be used concurrently; the
// methods of an ExpectConfig may not.
type ExpectConfig struct {
	// Name identifies the config in failures. Defaults to no name; "default" is no name either.
	Name string
	// Scheme has the Go types of all objects, except for duck types. Required.
	Scheme *runtime.Scheme
	// StatusSubResourceTypes are objects of the kinds with a status subresource: only status calls change their status.
	// Status calls for all other kinds fail, as if the object did not exist. Built-in kinds of Kubernetes need not be
	// listed.
	StatusSubResourceTypes []client.Object
	// Differ compares expectations with observations. Defaults to DefaultDiffer.
	Differ Differ
	// Realistic brings the API in memory closer to a real server, in ways that can break tests that pass without it:
	// generations are incremented, a create removes the status of kinds with a status subresource, objects get a uid, an
	// update without a change has no effect, APIReader sees what Client writes, and writes to all subresources are
	// executed and asserted. Otherwise, reads of subresources and writes to those other than the status succeed without an
	// effect. Defaults to false.
	Realistic bool
	// GivenObjects exist from the start. They are copied. Objects without a creation timestamp get one, one second after
	// the epoch.
	GivenObjects []client.Object
	// APIGivenObjects exist from the start for APIReader only. APIReader sees neither the GivenObjects nor the writes of
	// Client. A Realistic config has one API for both: APIReader sees all objects, and APIGivenObjects are those that have
	// not reached the cache of Client.
	APIGivenObjects []client.Object
	// WithClientBuilder configures the API in memory, for example with an index or a REST mapper. It is called for Client,
	// and again for APIReader if that is used. Defaults to no change.
	WithClientBuilder func(*fake.ClientBuilder) *fake.ClientBuilder
	// WithReactors receive the calls of Client before they are executed, and can change, answer and fail them. The first
	// reactor that handles a call determines its result.
	WithReactors []ReactionFunc
	// GivenAPIResources are the resources that Discovery and the REST mapper of Client know. Defaults to none.
	GivenAPIResources []*metav1.APIResourceList
	// GivenTracks are references that are tracked from the start. They are not observed.
	GivenTracks []TrackRequest

	// ExpectTracks are the references that a reconciler tracks.
	ExpectTracks []TrackRequest
	// ExpectEvents are the emitted events, of both recorders.
	ExpectEvents []Event
	// ExpectApplies are the applied objects.
	ExpectApplies []ApplyRef
	// ExpectCreates are the created objects, before they get a generated name.
	ExpectCreates []client.Object
	// ExpectUpdates are the updated objects.
	ExpectUpdates []client.Object
	// ExpectPatches are the patches of objects.
	ExpectPatches []PatchRef
	// ExpectDeletes are the deletions of single objects.
	ExpectDeletes []DeleteRef
	// ExpectDeleteCollections are the deletions of objects by selector.
	ExpectDeleteCollections []DeleteCollectionRef
	// ExpectStatusUpdates are the updates of a status. Only the kind, name and status of an object are compared.
	ExpectStatusUpdates []client.Object
	// ExpectStatusPatches are the patches of a status.
	ExpectStatusPatches []PatchRef
	// ExpectStatusApplies are the applies to a status.
	ExpectStatusApplies []ApplyRef
	// ExpectSubResources are the writes to other subresources. They are asserted if the field is not nil, or if the config
	// is Realistic. An empty slice expects none.
	ExpectSubResources []SubResourceRef

	observedErrors []string
	// newAPI creates the API. Defaults to newFakeAPI.
	newAPI func(*ExpectConfig) (*api, error)
	// permissions records what calls need. Optional.
	permissions *rbac.Recorder
	// given are the objects that the API is created with.
	given givenObjects
	// opened is the config in use, nil before the first call of Config.
	opened *openConfig
}

// openConfig is a config in use.
type openConfig struct {
	config reconcilers.Config
	api    *api
	client *clientWrapper
	events *eventLog
	tracks *trackRecorder
	// answered reports which of WithReactors have answered a call.
	answered []atomic.Bool
	// err is not nil if the config cannot be used.
	err error
}

// Config returns the config, the same each time. Its Client is a [TestClient]. It panics with all problems if a given
// value cannot be used.
func (c *ExpectConfig) Config() reconcilers.Config {
	return must(c.build())
}

// build is Config with an error instead of a panic.
func (c *ExpectConfig) build() (reconcilers.Config, error) {
	opened := c.open()
	return opened.config, opened.err
}

func (c *ExpectConfig) open() *openConfig {
	if c.opened == nil {
		var err error
		if c.opened, err = c.newOpenConfig(); err != nil {
			c.opened = &openConfig{
				client: &clientWrapper{}, events: &eventLog{}, tracks: &trackRecorder{},
				err: fmt.Errorf("ExpectConfig%s cannot be used:\n%w", c.configName(), err),
			}
		}
	}
	return c.opened
}

func (c *ExpectConfig) newOpenConfig() (*openConfig, error) {
	o := &openConfig{}
	problems := c.copyGiven()
	if c.Scheme != nil {
		o.events = &eventLog{scheme: c.Scheme}
		o.tracks = newTrackRecorder(c.Scheme)
		for i, request := range c.GivenTracks {
			if err := o.tracks.give(request); err != nil {
				problems = append(problems, fmt.Errorf("GivenTracks[%d]: %w", i, err))
			}
		}
	}
	discovery, err := fakeapi.NewDiscovery(c.GivenAPIResources)
	if err = errors.Join(append(problems, err)...); err != nil {
		return nil, err
	}

	newAPI := c.newAPI
	if newAPI == nil {
		newAPI = newFakeAPI
	}
	if o.api, err = newAPI(c); err != nil {
		return nil, err
	}
	if o.api.discovery != nil {
		discovery = o.api.discovery
	}
	o.client = newClientWrapper(duck.NewDuckAwareClientWrapper(o.api.client), o.api.addGiven)
	o.client.executeSubResources, o.client.permissions = c.Realistic || c.newAPI != nil, c.permissions
	o.answered = make([]atomic.Bool, len(c.WithReactors))
	for i, reactor := range slices.Backward(c.WithReactors) {
		o.client.PrependReactor("*", "*", func(action Action) (handled bool, ret runtime.Object, err error) {
			if handled, ret, err = reactor(action); handled {
				o.answered[i].Store(true)
			}
			return handled, ret, err
		})
	}
	o.config = reconcilers.Config{
		Client:        o.client,
		APIReader:     duck.NewDuckAwareAPIReaderWrapper(o.api.reader, o.client),
		Discovery:     discovery,
		Recorder:      recorder{o.events},
		EventRecorder: eventRecorder{o.events},
		Tracker:       o.tracks,
	}
	if c.permissions != nil {
		o.config.APIReader = recordingReader{o.config.APIReader, o.client, c.permissions}
	}
	return o, nil
}

// configName returns the name of the config for use in a message, if it has one.
func (c *ExpectConfig) configName() string {
	if c.Name == "" || c.Name == "default" {
		return ""
	}
	return fmt.Sprintf(" for config %q", c.Name)
}

func (c *ExpectConfig) differ() Differ {
	if c.Differ == nil {
		return DefaultDiffer
	}
	return c.Differ
}

// givenObjects are copies of the given objects of a config, as the API stores them.
type givenObjects struct {
	objects, apiObjects, statusSubResources []client.Object
}

// copyGiven sets c.given, and returns all problems of the given values.
func (c *ExpectConfig) copyGiven() []error {
	if c.Scheme == nil {
		//nolint:staticcheck // Scheme is the name of a field.
		return []error{errors.New("Scheme: required, it must know the kinds of all objects")}
	}
	var problems []error
	for _, field := range []struct {
		name     string
		objs     []client.Object
		stored   *[]client.Object
		validate func([]client.Object, *runtime.Scheme) error
	}{
		{"StatusSubResourceTypes", c.StatusSubResourceTypes, &c.given.statusSubResources, nil},
		{"GivenObjects", c.GivenObjects, &c.given.objects, fakeapi.ValidateGiven},
		{"APIGivenObjects", c.APIGivenObjects, &c.given.apiObjects, fakeapi.ValidateGiven},
	} {
		before := len(problems)
		for i, obj := range field.objs {
			stored, err := givenObject(obj, c.Scheme)
			if err != nil {
				problems = append(problems, fmt.Errorf("%s[%d]: %w", field.name, i, err))
			}
			*field.stored = append(*field.stored, stored)
		}
		if field.validate != nil && len(problems) == before {
			problems = append(problems, prefixed(field.name, field.validate(*field.stored, c.Scheme))...)
		}
	}
	for i, reactor := range c.WithReactors {
		if reactor == nil {
			problems = append(problems, fmt.Errorf("WithReactors[%d]: is nil", i))
		}
	}
	return problems
}

// prefixed returns the errors of a joined error, each with a prefix.
func prefixed(prefix string, err error) []error {
	if err == nil {
		return nil
	}
	errs := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		errs = joined.Unwrap()
	}
	return each(errs, func(err error) error { return fmt.Errorf("%s%w", prefix, err) })
}

// givenObject returns a copy of an object as it is stored: created before any test, and as an unstructured object if it
// is a duck.
func givenObject(obj client.Object, scheme *runtime.Scheme) (client.Object, error) {
	obj, err := unwrap(obj)
	if err != nil {
		return nil, err
	}
	if _, err := apiutil.GVKForObject(obj, scheme); err != nil && !duck.IsDuck(obj, scheme) {
		return nil, fmt.Errorf("the kind of %T is neither in the Scheme nor set on the object", obj)
	}
	if created := obj.GetCreationTimestamp(); created.IsZero() {
		obj.SetCreationTimestamp(metav1.NewTime(time.UnixMilli(1000)))
	}
	// The fake client would add the kind of bare metadata to the scheme.
	if _, metadata := obj.(*metav1.PartialObjectMetadata); !metadata && !duck.IsDuck(obj, scheme) {
		return obj, nil
	}
	u := &unstructured.Unstructured{}
	return u, duck.Convert(obj, u)
}

// unwrap returns a copy of an object. DeepCopyObject of a wrapper returns the wrapped object.
func unwrap(obj client.Object) (client.Object, error) {
	if nilcheck.IsNil(obj) {
		return nil, errors.New("is nil")
	}
	copied := obj.DeepCopyObject()
	unwrapped, ok := copied.(client.Object)
	if !ok || nilcheck.IsNil(unwrapped) {
		return nil, fmt.Errorf("DeepCopyObject of %T returns a %T, not an object", obj, copied)
	}
	return unwrapped, nil
}
