package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const keyProgress = "k3s/etcd/learnerProgress"

type progress struct {
	ID               uint64    `json:"id,omitempty"`
	Name             string    `json:"name,omitempty"`
	RaftAppliedIndex uint64    `json:"raftAppliedIndex,omitempty"`
	LastProgress     meta.Time `json:"lastProgress,omitempty"`
}

// manageLearners looks after learners and writes conditions, beside the leader
// only.
func (s *server) manageLearners(ctx context.Context) error {
	api, err := s.kube.client()
	if err != nil {
		return err
	}
	for said := ""; pause(ctx, s.o.Manage); {
		now := ""
		if err := s.manageOnce(ctx, api); err != nil && ctx.Err() == nil {
			now = err.Error()
		}
		if now != said && now != "" {
			s.log.Error("learner management", "err", now)
		}
		said = now
	}
	return nil
}

func (s *server) manageOnce(ctx context.Context, api *apiClient) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	status, err := s.client.Status(ctx, s.local())
	if err != nil || status.Header.MemberId != status.Leader {
		return err
	}
	p, err := s.progress(ctx)
	if err != nil {
		return err
	}
	list, err := s.client.MemberList(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range list.Members {
		if m.IsLearner {
			errs = append(errs, s.track(ctx, p, m))
		}
	}
	// The list is from before a promotion: the condition follows at the next look.
	return errors.Join(append(errs, s.conditions(ctx, api, list.Members))...)
}

// track promotes a learner if etcd accepts it. One that makes no progress for too
// long is removed.
func (s *server) track(ctx context.Context, p *progress, m *pb.Member) error {
	if _, err := s.client.MemberPromote(ctx, m.ID); err == nil {
		s.log.Info("promoted learner", "member", m.Name)
		return nil
	}
	now := time.Now()
	if p.Name != m.Name || p.ID != m.ID {
		*p = progress{ID: m.ID, Name: m.Name, LastProgress: meta.NewTime(now)}
	}
	for _, u := range m.ClientURLs {
		status, err := s.statusOf(ctx, u)
		if err != nil {
			continue
		}
		if p.RaftAppliedIndex < status.RaftAppliedIndex {
			p.RaftAppliedIndex, p.LastProgress = status.RaftAppliedIndex, meta.NewTime(now)
		}
		break
	}
	if idle := now.Sub(p.LastProgress.Time); idle > s.o.Stall {
		_, err := s.client.MemberRemove(ctx, m.ID)
		if err == nil {
			s.log.Warn("removed learner from etcd cluster", "member", m.Name, "stalled", idle.String())
		}
		return err
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	_, err = s.client.Put(ctx, keyProgress, string(text))
	return err
}

func (s *server) progress(ctx context.Context) (*progress, error) {
	got, err := s.client.Get(ctx, keyProgress)
	if err != nil || len(got.Kvs) == 0 {
		return &progress{}, err
	}
	p := &progress{}
	return p, json.Unmarshal(got.Kvs[0].Value, p)
}

func (s *server) statusOf(ctx context.Context, u string) (*clientv3.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	status, err := s.client.Status(ctx, u)
	if err == nil && len(status.Errors) > 0 {
		err = errors.New("etcd member has status errors: " + strings.Join(status.Errors, ","))
	}
	return status, err
}

// conditions writes EtcdIsVoter on the Nodes of etcd servers.
func (s *server) conditions(ctx context.Context, api *apiClient, members []*pb.Member) error {
	nodes, err := api.list(ctx, labelETCD+"=true")
	if err != nil {
		return err
	}
	var errs []error
	for _, n := range nodes {
		errs = append(errs, s.condition(ctx, api, &n, s.voting(ctx, members, n.Annotations[annotationName])))
	}
	return errors.Join(errs...)
}

// voting is the condition of the member with a name.
func (s *server) voting(ctx context.Context, members []*pb.Member, name string) core.NodeCondition {
	at := slices.IndexFunc(members, func(m *pb.Member) bool { return m.Name == name && name != "" })
	if at < 0 {
		return conditionOf(nil, nil)
	}
	m, err := members[at], errors.New("it has no client URL")
	if len(m.ClientURLs) > 0 {
		_, err = s.statusOf(ctx, m.ClientURLs[0])
	}
	return conditionOf(m, err)
}

// conditionOf is the condition of a member, nil for none, that answered or not.
func conditionOf(m *pb.Member, err error) core.NodeCondition {
	switch {
	case m == nil:
		return isVoter(core.ConditionFalse, "NotAMember", "Node is not a member of the etcd cluster")
	case err != nil:
		return isVoter(core.ConditionFalse, "Unhealthy", "failed to check etcd member status: "+err.Error())
	case m.IsLearner:
		return isVoter(core.ConditionFalse, "MemberIsLearner", "Node has not been promoted to voting member of the etcd cluster")
	}
	return isVoter(core.ConditionTrue, "MemberNotLearner", "Node is a voting member of the etcd cluster")
}

func isVoter(status core.ConditionStatus, reason, message string) core.NodeCondition {
	return core.NodeCondition{Type: conditionVoter, Status: status, Reason: reason, Message: message}
}

// condition writes one, unless it says the same and is not old.
func (s *server) condition(ctx context.Context, api *apiClient, n *core.Node, c core.NodeCondition) error {
	c.LastHeartbeatTime, c.LastTransitionTime = meta.Now(), meta.Now()
	for _, old := range n.Status.Conditions {
		if old.Type != c.Type || old.Status != c.Status || old.Reason != c.Reason || old.Message != c.Message {
			continue
		}
		if time.Since(old.LastHeartbeatTime.Time) < s.o.Condition {
			return nil
		}
		c.LastTransitionTime = old.LastTransitionTime
	}
	return api.condition(ctx, n.Name, c)
}
