// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrExists and ErrAbsent are returned by the calls of a [Cloud].
var (
	ErrExists = errors.New("exists already")
	ErrAbsent = errors.New("does not exist")
)

// Cloud is a system outside of the cluster, for example one that has buckets. It stores values by keys. Each call can
// fail, with or without an effect, as calls of [Env.Call] do.
type Cloud struct{ process *process }

// cloudState is the state of the external system.
type cloudState struct {
	values map[string]string
	// created has the creation time of each key.
	created map[string]time.Time
	// version counts changes.
	version int
	// named counts the generated keys by prefix.
	named map[string]int
}

func (s *cloudState) set(key, value string) {
	if old, ok := s.values[key]; ok && old == value {
		return
	}
	if s.values == nil {
		s.values, s.created = map[string]string{}, map[string]time.Time{}
	}
	if _, ok := s.values[key]; !ok {
		s.created[key] = time.Now()
	}
	s.values[key] = value
	s.version++
}

// Create creates a value. It returns [ErrExists] if the key exists.
func (c Cloud) Create(ctx context.Context, key, value string) error {
	return c.call(ctx, "create", key, func(s *cloudState) error {
		if _, ok := s.values[key]; ok {
			return fmt.Errorf("%s: %w", key, ErrExists)
		}
		s.set(key, value)
		return nil
	})
}

// CreateNamed creates a value and returns its key, which the system generates from a prefix. Two calls create two
// values.
func (c Cloud) CreateNamed(ctx context.Context, prefix, value string) (key string, err error) {
	world := &c.process.run.world
	err = c.call(ctx, "create", prefix, func(s *cloudState) error {
		if s.named == nil {
			s.named = map[string]int{}
		}
		s.named[prefix]++
		key = fmt.Sprintf("%s%d", prefix, s.named[prefix])
		world.generated.learn(key, prefix)
		s.set(key, value)
		return nil
	})
	if err != nil {
		return "", err
	}
	return key, nil
}

// Get returns a value. It returns [ErrAbsent] if the key does not exist.
func (c Cloud) Get(ctx context.Context, key string) (value string, err error) {
	err = c.read(ctx, "get", key, func(s *cloudState) error {
		var ok bool
		if value, ok = s.values[key]; !ok {
			return fmt.Errorf("%s: %w", key, ErrAbsent)
		}
		return nil
	})
	return value, err
}

// List returns the keys with a prefix, sorted.
func (c Cloud) List(ctx context.Context, prefix string) (keys []string, err error) {
	err = c.read(ctx, "list", prefix, func(s *cloudState) error {
		for _, key := range sortedKeys(s.values) {
			if strings.HasPrefix(key, prefix) {
				keys = append(keys, key)
			}
		}
		return nil
	})
	return keys, err
}

// Put creates or replaces a value.
func (c Cloud) Put(ctx context.Context, key, value string) error {
	return c.call(ctx, "put", key, func(s *cloudState) error {
		s.set(key, value)
		return nil
	})
}

// Delete deletes a value. It returns [ErrAbsent] if the key does not exist.
func (c Cloud) Delete(ctx context.Context, key string) error {
	return c.call(ctx, "delete", key, func(s *cloudState) error {
		if _, ok := s.values[key]; !ok {
			return fmt.Errorf("%s: %w", key, ErrAbsent)
		}
		delete(s.values, key)
		s.version++
		return nil
	})
}

func (c Cloud) read(ctx context.Context, verb, key string, do func(*cloudState) error) error {
	r := c.process.run
	return c.process.submit(ctx, &call{
		site: site{
			act: "call", kind: "cloud " + verb + " " + key,
		}, outside: true, do: func(client.Object) error { return do(&r.world.cloud) },
	})
}

func (c Cloud) call(ctx context.Context, verb, key string, do func(*cloudState) error) error {
	r := c.process.run
	return c.process.submit(ctx, &call{
		site: site{
			act: "call", kind: "cloud " + verb + " " + key,
		}, outside: true, effect: true, do: func(client.Object) error {
			before := r.world.cloud.version
			_, existed := r.world.cloud.values[key]
			err := do(&r.world.cloud)
			if r.world.cloud.version != before {
				r.gateway.cloudChanged(verb, key, existed)
			}
			return err
		},
	})
}
