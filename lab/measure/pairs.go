// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const namespace = "default"

// measurePairs creates and deletes ConfigMaps.
func (s settings) measurePairs(ctx context.Context, out io.Writer, dir string) (err error) {
	p, err := s.start(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	if err := p.report(ctx, out, "idle"); err != nil {
		return err
	}
	work := func(ctx context.Context, i int) error {
		maps := p.client.CoreV1().ConfigMaps(namespace)
		name := fmt.Sprintf("pair-%07d", i)
		_, err := maps.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Data:       map[string]string{"key": "value", "number": name},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		return maps.Delete(ctx, name, metav1.DeleteOptions{})
	}
	if err := s.repeat(ctx, out, p, s.pairs, "pairs", work); err != nil {
		return err
	}
	if err := s.profile(ctx, p); err != nil {
		return err
	}
	final, err := s.observe(ctx, out, p)
	if err != nil {
		return err
	}
	return s.limits(final)
}

// repeat calls work count times from concurrent workers and prints the usage meanwhile.
func (s settings) repeat(
	ctx context.Context, out io.Writer, p *process, count int, noun string, work func(context.Context, int) error,
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next, done atomic.Int64
	var workers sync.WaitGroup
	begin := time.Now()
	for range s.workers {
		workers.Go(func() {
			for i := int(next.Add(1)); i <= count && ctx.Err() == nil; i = int(next.Add(1)) {
				if err := work(ctx, i); err != nil {
					cancel(fmt.Errorf("number %d of %d %s: %w", i, count, noun, err))
					return
				}
				done.Add(1)
			}
		})
	}
	finished := make(chan struct{})
	go func() { workers.Wait(); close(finished) }()
	ticker := time.NewTicker(s.every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			label := fmt.Sprintf("%d %s in %.0f s", done.Load(), noun, time.Since(begin).Seconds())
			if err := p.report(ctx, out, label); err != nil && ctx.Err() == nil {
				return err
			}
		case <-finished:
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return p.report(ctx, out, fmt.Sprintf("%d %s in %.0f s", count, noun, time.Since(begin).Seconds()))
		}
	}
}

// report prints the usage and the time of a list of the namespace's ConfigMaps.
func (p *process) report(ctx context.Context, out io.Writer, label string) error {
	u, err := p.usage()
	if err != nil {
		return err
	}
	begin := time.Now()
	list, err := p.client.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s: %s, list of %d in %s\n", label, u, len(list.Items),
		time.Since(begin).Round(100*time.Microsecond))
	return err
}

// observe prints the usage until the settling time has passed, and returns the last one.
func (s settings) observe(ctx context.Context, out io.Writer, p *process) (usage, error) {
	begin := time.Now()
	for time.Since(begin) < s.settle {
		select {
		case <-time.After(min(s.every, s.settle)):
		case <-ctx.Done():
			return usage{}, context.Cause(ctx)
		}
		if err := p.report(ctx, out, fmt.Sprintf("idle for %.0f s", time.Since(begin).Seconds())); err != nil {
			return usage{}, err
		}
	}
	return p.usage()
}

// profile writes a heap profile, if requested.
func (s settings) profile(ctx context.Context, p *process) error {
	if s.heap == "" {
		return nil
	}
	body, err := p.client.Discovery().RESTClient().Get().AbsPath("/debug/pprof/heap").Param("gc", "1").Do(ctx).Raw()
	if err != nil {
		return fmt.Errorf("heap profile: %w", err)
	}
	return os.WriteFile(s.heap, body, 0o600)
}
