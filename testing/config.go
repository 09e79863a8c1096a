// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"trueup.dev/duck"
	"trueup.dev/reconcilers"
)

// ExpectConfig makes a [reconcilers.Config] that reaches an API in memory, and asserts what is done through it: writes,
// events and tracked references. The test cases of this package have one of their own. Use it directly to test
// functions that take a Config, and in the AdditionalConfigs of cases for the further clusters a reconciler works with.
//
// All expectations are positional: the first expected create is compared to the first observed, and so on; whatever is
// expected but not observed, or observed but not expected, is a failure. Calls are observed in the order of their kind,
// not across kinds: nothing is asserted about a create coming before an update. Calls that fail are observed too.
//
// The Given fields, the scheme and the reactors are read when the config is first made, everything else when it is
// asserted. A copy of an ExpectConfig is one of its own if it was made before that. The Config may be used
// concurrently; the methods of an ExpectConfig may not.
type ExpectConfig struct {
	// Name tells the config from others in failures. Default is none; "default" is taken for none.
	Name string
	// Scheme has the Go types of all objects, except for duck types. Required.
	Scheme *runtime.Scheme
	// StatusSubResourceTypes are objects of the kinds whose status is a sub resource: their status is changed by status
	// calls only, and these fail for all other kinds, as if the object did not exist. Kinds of Kubernetes itself need not
	// be listed.
	StatusSubResourceTypes []client.Object
	// Differ compares what is expected to what is observed. Default is DefaultDiffer.
	Differ Differ
	// Realistic brings the API in memory closer to a real server, where that may break tests that pass without:
	// generations move, the status is removed on create where it is a sub resource, objects get a uid, an update that
	// changes nothing is not a change, APIReader sees what Client writes, and writes to all sub resources are executed and
	// asserted. Default is false.
	Realistic bool
	// GivenObjects are there from the start. They are copied. Those without a creation timestamp get one, one second after
	// the epoch.
	GivenObjects []client.Object
	// APIGivenObjects are there from the start for APIReader, and for it alone: for Client they do not exist. The
	// GivenObjects and what Client makes of them do not exist for APIReader. A Realistic config has one API for both:
	// APIReader sees all objects, and APIGivenObjects are those that have not reached the cache of Client.
	APIGivenObjects []client.Object
	// WithClientBuilder changes how the API in memory is made, to add an index or a REST mapper for example. It is called
	// for Client and again for APIReader, if that is used. Default is to change nothing.
	WithClientBuilder func(*fake.ClientBuilder) *fake.ClientBuilder
	// WithReactors are told of the calls of Client before they are executed, and can change, answer and fail them. The
	// first one that handles a call decides.
	WithReactors []ReactionFunc
	// GivenAPIResources are what Discovery and the REST mapper of Client know about. Default is nothing.
	GivenAPIResources []*metav1.APIResourceList
	// GivenTracks are what was tracked before. They are not observed.
	GivenTracks []TrackRequest

	// ExpectTracks are the references that are tracked.
	ExpectTracks []TrackRequest
	// ExpectEvents are the events that are emitted, by either recorder.
	ExpectEvents []Event
	// ExpectApplies are the objects that are applied.
	ExpectApplies []ApplyRef
	// ExpectCreates are the objects that are created, as they are before they get a generated name.
	ExpectCreates []client.Object
	// ExpectUpdates are the objects that are updated.
	ExpectUpdates []client.Object
	// ExpectPatches are the patches of objects.
	ExpectPatches []PatchRef
	// ExpectDeletes are the deletions of single objects.
	ExpectDeletes []DeleteRef
	// ExpectDeleteCollections are the deletions of objects by selector.
	ExpectDeleteCollections []DeleteCollectionRef
	// ExpectStatusUpdates are the updates of a status. Of an object only kind, name and status are compared.
	ExpectStatusUpdates []client.Object
	// ExpectStatusPatches are the patches of a status.
	ExpectStatusPatches []PatchRef
	// ExpectStatusApplies are what is applied to a status.
	ExpectStatusApplies []ApplyRef
	// ExpectSubResources are the writes to other sub resources. They are asserted if this is not nil, or if the config is
	// Realistic: an empty slice says that there are none.
	ExpectSubResources []SubResourceRef

	observedErrors []string
	// openAPI makes the API; newFakeAPI when nil.
	openAPI func(*ExpectConfig) (*api, error)
	// given is what the API is made with.
	given givenObjects
	// opened is what was made of the config; nil before.
	opened *openConfig
}

// openConfig is a config in use.
type openConfig struct {
	config reconcilers.Config
	api    *api
	client *clientWrapper
	events *eventLog
	tracks *trackRecorder
	// err is why there is none of it.
	err error
}

// Config returns the config, the same each time. Its Client is a [TestClient]. It panics when a given value cannot be
// used, with all that is wrong with them.
func (c *ExpectConfig) Config() reconcilers.Config {
	return must(c.build())
}

// build is Config with an error for what is wrong with the given values.
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
	discovery, err := newDiscovery(c.GivenAPIResources)
	if err = errors.Join(append(problems, err)...); err != nil {
		return nil, err
	}

	openAPI := c.openAPI
	if openAPI == nil {
		openAPI = newFakeAPI
	}
	if o.api, err = openAPI(c); err != nil {
		return nil, err
	}
	if o.api.discovery != nil {
		discovery = o.api.discovery
	}
	o.client = newClientWrapper(duck.NewDuckAwareClientWrapper(o.api.client), o.api.addGiven)
	o.client.executeSubResources = c.Realistic || c.openAPI != nil
	for _, reactor := range slices.Backward(c.WithReactors) {
		o.client.PrependReactor("*", "*", reactor)
	}
	o.config = reconcilers.Config{
		Client:        o.client,
		APIReader:     duck.NewDuckAwareAPIReaderWrapper(o.api.reader, o.client),
		Discovery:     discovery,
		Recorder:      recorder{o.events},
		EventRecorder: eventRecorder{o.events},
		Tracker:       o.tracks,
	}
	return o, nil
}

// configName names the config in a text, if it has to be told from others.
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
