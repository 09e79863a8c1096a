// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/lab/benchmarks/internal/api"
	"trueup.dev/lab/benchmarks/internal/report"
)

// Metrics of a widget that is changed while the controller is busy with others. A change takes from the response of the
// API server until the cache of the controller has the status for it. Its requests are in the queue for a part of that.
var (
	Calm = report.Metric{Name: "change to status, calm, median", Unit: "ms"}
	Busy = Response{
		took:  report.Metric{Name: "change to status, busy, median", Unit: "ms"},
		wait:  report.Metric{Name: "time in the queue, median", Unit: "ms", Drawn: true},
		most:  report.Metric{Name: "time in the queue, 95 %", Unit: "ms"},
		worst: report.Metric{Name: "time in the queue, worst", Unit: "ms"},
	}
	Outbreak = Response{
		took:  report.Metric{Name: "change to status, first attempts, median", Unit: "ms"},
		wait:  report.Metric{Name: "time in the queue, first attempts, median", Unit: "ms"},
		most:  report.Metric{Name: "time in the queue, first attempts, 95 %", Unit: "ms"},
		worst: report.Metric{Name: "time in the queue, first attempts, worst", Unit: "ms"},
	}
	// Responses is the number of changes.
	Responses = report.Metric{Name: "changes", Tally: true}
)

// Response are the metrics of one phase.
type Response struct{ took, wait, most, worst report.Metric }

// pause is the time between two changes.
const pause = 100 * time.Millisecond

// Responder changes one widget, and measures how long the controller takes.
type Responder struct {
	trial *Trial
	key   client.ObjectKey
	// seen receives the generation that the status of the widget describes.
	seen chan int64
	all  int
}

// StartBusy starts the controller. The widget with this key must exist. It reports the response of the controller
// without other work.
func (t *Trial) StartBusy(ctx context.Context, setUps map[string]SetUp, key client.ObjectKey) (*Responder, error) {
	r := &Responder{trial: t, key: key, seen: make(chan int64, 1000)}
	if _, err := t.start(ctx, setUps[t.Contender], 1, func(w *api.Widget) bool {
		if client.ObjectKeyFromObject(w) == key {
			select {
			case r.seen <- w.Status.ObservedGeneration:
			default:
			}
		}
		return false
	}); err != nil {
		return nil, err
	}
	const changes = 20
	took := []float64{}
	for range changes {
		if err := r.change(ctx, &took); err != nil {
			return nil, err
		}
	}
	t.Report(Calm, report.Median(took...))
	return r, nil
}

// periods is the number of times of Options.Quiet for which a widget is changed, 20 seconds by default.
const periods = 20

// While changes the widget again and again, at least once, and reports the responses. It ends after some time, or when
// the controller has done that many reconciles.
func (r *Responder) While(ctx context.Context, metrics Response, isDone func(reconciles int) bool) error {
	took, end, queue := []float64{}, time.Now().Add(periods*r.trial.options.Quiet), r.trial.controller.queue()
	queue.takeWaits(r.key)
	for {
		if err := r.change(ctx, &took); err != nil {
			return err
		}
		if time.Now().After(end) || isDone(queue.counted().done) {
			break
		}
	}
	waits := []float64{}
	for _, wait := range queue.takeWaits(r.key) {
		waits = append(waits, float64(wait.Nanoseconds())/1e6)
	}
	if len(waits) == 0 {
		return errors.New("the queue has not returned the widget")
	}
	slices.Sort(waits)
	r.all += len(took)
	most := waits[(len(waits)-1)*95/100]
	r.trial.Report(metrics.took, report.Median(took...))
	r.trial.Report(metrics.wait, report.Median(waits...))
	r.trial.Report(metrics.most, most)
	r.trial.Report(metrics.worst, waits[len(waits)-1])
	r.trial.Report(Responses, float64(r.all))
	r.trial.Note("%s %.3g ms", metrics.most.Name, most)
	return nil
}

// change changes the widget, and appends the milliseconds until its status describes the change.
func (r *Responder) change(ctx context.Context, took *[]float64) error {
	w := &api.Widget{}
	if err := r.trial.Live.Get(ctx, r.key, w); err != nil {
		return err
	}
	before := w.DeepCopy()
	w.Spec.Data["change"] = strconv.FormatInt(w.Generation, 10)
	if err := r.trial.Live.Patch(ctx, w, client.MergeFrom(before)); err != nil {
		return err
	}
	changed := time.Now()
	for {
		select {
		case generation := <-r.seen:
			if generation < w.Generation {
				continue
			}
		case <-r.trial.controller.ended.Done():
			return r.trial.controller.failure()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		break
	}
	*took = append(*took, float64(time.Since(changed).Nanoseconds())/1e6)
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
