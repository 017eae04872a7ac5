package membership

// The codes that this version gives, each with its reason in docs/refusals.md.
const (
	// About the samples.
	SamplesMissing Code = "samples-missing"
	ProbeFailing   Code = "probe-failing"
	NotHeld        Code = "not-held"
	// About who would move.
	Pinned          Code = "pinned"
	UnmanagedVoter  Code = "unmanaged-voter"
	NoCandidate     Code = "no-candidate"
	NotQualified    Code = "not-qualified"
	ManyUnfit       Code = "many-unfit"
	DiskSpace       Code = "disk-space"
	CooldownRunning Code = "cooldown"
	SnapshotDue     Code = "snapshot-due"
	OnlyController  Code = "only-controller"
	HostNotReady    Code = "host-not-ready"
	// About grades.
	GradeNotFull   Code = "grade-not-full"
	NoTolerance    Code = "no-tolerance"
	NoRemovalActor Code = "no-removal-actor"
	// About what the owner asked for.
	NoGrades   Code = "no-grades"
	NotAVoter  Code = "not-a-voter"
	RequestOld Code = "request-old"
	NotDead    Code = "not-dead"
	// About the cluster.
	MembershipUnknown   Code = "membership-unknown"
	ClusterReplaced     Code = "cluster-replaced"
	NoLeader            Code = "no-leader"
	VoterNotResponding  Code = "voter-not-responding"
	VoterDown           Code = "voter-down"
	VoterUnhealthy      Code = "voter-unhealthy"
	VoterLagging        Code = "voter-lagging"
	PairUnreachable     Code = "pair-unreachable"
	MembershipDisagrees Code = "membership-disagrees"
	UnstartedMember     Code = "unstarted-member"
	LearnerPresent      Code = "learner-present"
	ExtraVoter          Code = "extra-voter"
	EvenTarget          Code = "even-target"
	BelowTarget         Code = "below-target"
	BelowMinimum        Code = "below-minimum"
	AtCeiling           Code = "at-ceiling"
	TooManyVoters       Code = "too-many-voters"
	AlarmRaised         Code = "alarm"
	DowngradeOpen       Code = "downgrade-open"
	UnsafeVersion       Code = "unsafe-version"
	VersionSkew         Code = "version-skew"
	MemberUnmapped      Code = "member-unmapped"
	ForeignController   Code = "foreign-controller"
	// About an operation.
	Paused                Code = "paused"
	Quarantine            Code = "quarantine"
	Futile                Code = "futile"
	MembershipChanged     Code = "membership-changed"
	SnapshotFailed        Code = "snapshot-failed"
	NewVoterNotResponding Code = "new-voter-not-responding"
	NewVoterUnfit         Code = "new-voter-unfit"
	LeaderNotMoved        Code = "leader-not-moved"
	FenceNotProven        Code = "fence-not-proven"
	GradeNotProven        Code = "grade-not-proven"
	RemovalRefused        Code = "removal-refused"
	StaleRemoval          Code = "stale-removal"
	DatastorePresent      Code = "datastore-present"
)

// AboutWindows reports whether a refusal only says that there are not yet
// enough samples: it lifts by waiting, with nothing wrong.
func (c Code) AboutWindows() bool { return c == SamplesMissing || c == NotHeld }
