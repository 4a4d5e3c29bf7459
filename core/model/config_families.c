/* Tables only: a new family is a row. Checked against the model classes by tests/fit/families.py. */
#include "core/model/config_families.h"

#include <stdbool.h>
#include <string.h>

/* Letters: h hidden, V vocabulary, L layers, H heads, K heads of keys, E experts. Sizes: d of a key, v of a value, f of
 * the feed-forward part, m of one expert. With a bias are, where they are 1: qb queries, ob the output of attention, fb
 * the feed-forward part, nb norms. */
static const char family_general[] =
    "h=hidden_size;V=vocab_size;L=num_hidden_layers;H=num_attention_heads;K=num_key_value_heads|H;d=head_dim|(h/H);v=d;"
    "f=intermediate_size;qb=attention_bias|0;ob=qb;qknorm=0;"
    "attention=h*H*d+h*K*d+h*K*v+H*v*h+qb*(H*d+K*d+K*v)+ob*h+qknorm;"
    "nb=0;norm=h*(1+nb);norms=2*norm;mixer=attention;"
    "gates=3;fb=mlp_bias|0;forward=gates*h*w+fb*((gates-1)*w+h);"
    "E=num_local_experts|num_experts|n_routed_experts|0;sparse=0;m=moe_intermediate_size|f;router=h*E;shared=0;"
    "feed=sparse?router+shared:forward(f);layer=mixer+norms+feed;expert=gates*h*m;experts=sparse?E*expert:0;"
    "tie=0;tied=tie_word_embeddings|tie;embed=V*h;headbias=0;"
    "bare=ends(.architectures,Model)-ends(.architectures,LMHeadModel);other=0;"
    "known=!has(.architectures)+bare+ends(.architectures,ForCausalLM)+ends(.architectures,LMHeadModel)"
    "+ends(.architectures,ForConditionalGeneration);"
    "head=norm+(known?bare?0:(tied?0:V*h)+headbias:odd(.architectures));";

/* ---- parts that several families have ---- */

#define TIED "tie=1;"
#define LAYER_NORM "nb=1;"
#define NORMS_4 "norms=4*norm;"
#define QK_NORM "qknorm=2*d;"          /* of each head */
#define QK_NORM_WIDE "qknorm=H*d+K*d;" /* of all heads together */
#define QKV_BIAS "qb=1;ob=0;"
#define TWO "gates=2;" /* feed-forward without a gate */
#define TWO_BIAS "gates=2;fb=1;qb=1;"
#define ALL_SPARSE "sparse=1;"
#define SHARED "shared=forward(m*(n_shared_experts|num_shared_experts|0));"
#define SPARSE_BEHIND \
  "sparse=has(mlp_layer_types)?says(mlp_layer_types,i,sparse):!(i<(first_k_dense_replace|0));" SHARED
#define SPARSE_STEP "sparse=(0<E)*((i+1)%(decoder_sparse_step|1)=0)*!(has(mlp_only_layers)?in(mlp_only_layers,i):0);"

/* Queries, keys and values through narrow rows. */
#define COMPRESSED                                                                         \
  "rope=qk_rope_head_dim;nope=qk_nope_head_dim;v=v_head_dim;q=q_lora_rank;r=kv_lora_rank;" \
  "query=has(q_lora_rank)?h*q+q+q*H*(nope+rope)+qb*q:h*H*(nope+rope);"                     \
  "attention=query+h*(r+rope)+qb*(r+rope)+r+r*H*(nope+v)+H*v*h+qb*h;"
#define INDEXER "mixer=attention+q*index_n_heads*index_head_dim+h*index_head_dim+2*index_head_dim+h*index_n_heads;"

/* Gated delta rule. */
#define DELTA                                                                                            \
  "kd=linear_num_key_heads*linear_key_head_dim;nv=linear_num_value_heads;vd=nv*linear_value_head_dim;"   \
  "delta=h*(2*kd+2*vd)+2*h*nv+(2*kd+vd)*linear_conv_kernel_dim+2*nv+linear_value_head_dim+vd*h;"         \
  "linear=has(layer_types)?says(layer_types,i,linear_attention):!((i+1)%(full_attention_interval|4)=0);" \
  "mixer=linear?delta:attention+h*H*d+qb*H*d;"

/* Mamba, and Mamba 2. */
#define MAMBA(inner, state, taps, rank, bias, conv_bias, norms)                                                 \
  "ssm=2*h*(" inner ")+(" bias ")*2*(" inner ")+(" inner ")*(" taps ")+(" conv_bias ")*(" inner ")+(" inner     \
  ")*((" rank ")+2*(" state "))+(" rank ")*(" inner ")+(" inner ")+(" inner ")*(" state ")+(" inner ")+(" inner \
  ")*h+(" bias ")*h+" norms ";"
#define MAMBA_2(inner, heads, groups, state, taps, bias, out_bias, conv_bias, norm)                                  \
  "inner=" inner ";mheads=" heads ";mixed=inner+2*(" groups ")*(" state                                              \
  ");"                                                                                                               \
  "ssm=h*(inner+mixed+mheads)+(" bias ")*(inner+mixed+mheads)+mixed*(" taps ")+(" conv_bias ")*mixed+3*mheads+" norm \
  "+inner*h+(" out_bias ")*h;"
#define MAMBA_2_LISTED                                                                                               \
  MAMBA_2("mamba_expand*h", "mamba_n_heads", "mamba_n_groups", "mamba_d_state", "mamba_d_conv", "mamba_proj_bias|0", \
          "mamba_proj_bias|0", "mamba_conv_bias|1", "inner")

/* Encoders and decoders. */
#define T5                                                                                                          \
  "h=d_model;L=num_decoder_layers|num_layers;H=num_heads;d=d_kv;f=d_ff;buckets=relative_attention_num_buckets*H;"   \
  "gates=2+(has(is_gated_act)?is_gated_act:says(feed_forward_proj,gated-gelu)+says(feed_forward_proj,gated-silu));" \
  "alone=ends(.architectures,EncoderModel);decoder=2*attention+3*norm+forward(f);"                                  \
  "encoder=num_layers*(attention+2*norm+forward(f))+norm;" TIED
/* Encoders: without a head, or with the one that fills in masked words. */
#define ENCODER(bare, filling)                                                                              \
  "head=!has(.architectures)+ends(.architectures,Model)?" bare ":ends(.architectures,ForMaskedLM)?" filling \
  ":odd(.architectures);"
#define POOLER ENCODER("h*h+h", "h*h+h+2*h+V")

/* Names of GPT-2's keys. */
#define GPT_KEYS "h=n_embd;L=n_layer;H=n_head;f=n_inner|(4*h);"

typedef struct family {
  const char *types; /* with a space before and behind each */
  const char *rules;
} family;

static const family families[] = {
    {" llama mistral ministral ministral3 cwm granite phi3 vaultgemma ", ""},
    {" helium ", "attention=h*H*d+2*h*K*d+h*h+qb*(H*d+2*K*d);"},
    {" smollm3 gemma ", TIED},
    {" ernie4_5 ", TIED "qb=use_bias|0;fb=use_bias|0;"},
    {" mixtral granitemoe ", ALL_SPARSE},
    {" granitemoeshared ", ALL_SPARSE "shared=3*h*(shared_intermediate_size|0);"},
    {" qwen2 qwen2_vl_text qwen2_5_vl_text ", QKV_BIAS},
    {" qwen2_moe ", "qb=qkv_bias|1;ob=0;shared=3*h*shared_expert_intermediate_size+h;" SPARSE_STEP},
    {" qwen3 qwen3_vl_text ", QK_NORM},
    {" qwen3_moe qwen3_vl_moe_text ", QK_NORM SPARSE_STEP},
    {" qwen3_next ", QK_NORM DELTA SPARSE_STEP "shared=3*h*shared_expert_intermediate_size+h;"},
    {" qwen3_5_text ", QK_NORM DELTA},
    {" qwen3_5_moe_text ", QK_NORM DELTA ALL_SPARSE "shared=3*h*shared_expert_intermediate_size+h;"},
    {" gemma2 ", TIED NORMS_4},
    {" gemma3_text ",
     TIED NORMS_4 QK_NORM "d=head_dim|256;H=num_attention_heads|8;K=num_key_value_heads|4;V=vocab_size|262208;"},
    {" phi ", LAYER_NORM TWO_BIAS "norms=norm;headbias=V;qknorm=(qk_layernorm|0)*4*d;"},
    {" phimoe ", LAYER_NORM ALL_SPARSE "headbias=(lm_head_bias|0)*V;"},
    {" deepseek_v2 deepseek_v3 glm4_moe_lite ", COMPRESSED SPARSE_BEHIND},
    {" youtu ", COMPRESSED TIED},
    {" deepseek_v32 glm_moe_dsa ", "fb=0;" COMPRESSED INDEXER SPARSE_BEHIND},
    {" gpt2 ", GPT_KEYS LAYER_NORM TWO_BIAS TIED "embed=(V+n_positions)*h;"},
    {" gpt_bigcode ", GPT_KEYS LAYER_NORM TWO_BIAS TIED "embed=(V+n_positions)*h;K=multi_query?1:H;"},
    {" gpt_neo ", "qb=0;ob=1;" LAYER_NORM TWO_BIAS TIED
                  "L=num_layers;H=num_heads;f=intermediate_size|(4*h);embed=(V+max_position_embeddings)*h;"},
    {" gpt_neox ", "qb=attention_bias|1;" LAYER_NORM TWO_BIAS},
    {" gptj codegen ", "qb=0;norms=norm;headbias=V;" GPT_KEYS LAYER_NORM TWO_BIAS},
    {" gpt_oss ", ALL_SPARSE "qb=attention_bias|1;qknorm=H;router=h*E+E;expert=3*h*m+2*m+h;"},
    {" falcon ", LAYER_NORM TIED TWO
     "qb=bias|0;fb=qb;f=ffn_hidden_size|(4*h);K=new_decoder_architecture?(num_kv_heads|H):multi_query?1:H;"
     "norms=new_decoder_architecture?norm*(num_ln_in_parallel_attn|2):parallel_attn?norm:2*norm;"},
    {" falcon_h1 ", MAMBA_2("mamba_d_ssm|(mamba_expand*h)", "mamba_n_heads", "mamba_n_groups", "mamba_d_state",
                            "mamba_d_conv", "mamba_proj_bias|0", "projectors_bias|0", "mamba_conv_bias|1",
                            "(mamba_rms_norm|0)*inner") "mixer=attention+ssm;"},
    {" mamba falcon_mamba ",
     TIED "n=intermediate_size|(expand*h);rank=says(time_step_rank,auto)?(h+15)/16:time_step_rank;" MAMBA(
         "n", "state_size", "conv_kernel", "rank", "use_bias|0", "use_conv_bias|1", "0") "layer=ssm+norm;"},
    {" mamba2 ", MAMBA_2("expand*h", "num_heads", "n_groups", "state_size", "conv_kernel", "use_bias|0", "use_bias|0",
                         "use_conv_bias|1", "inner") "layer=ssm+norm;"},
    {" jamba ", "n=mamba_expand*h;rank=says(mamba_dt_rank,auto)?(h+15)/16:mamba_dt_rank;" MAMBA(
                    "n", "mamba_d_state", "mamba_d_conv", "rank", "mamba_proj_bias|0", "mamba_conv_bias|1",
                    "rank+2*mamba_d_state") "sparse=(1<E)*(i%(expert_layer_period|2)=(expert_layer_offset|1));"
                                            "mixer=i%(attn_layer_period|8)=(attn_layer_offset|4)?attention:ssm;"},
    {" bamba ", MAMBA_2_LISTED "mixer=(has(attn_layer_indices)?in(attn_layer_indices,i):0)?attention:ssm;"},
    {" granitemoehybrid ", MAMBA_2_LISTED "sparse=0<E;shared=3*h*shared_intermediate_size;"
                                          "feed=(sparse?router:0)+shared;mixer=says(layer_types,i,attention)+says("
                                          "layer_types,i,full_attention)?attention:ssm;"},
    {" nemotron ", LAYER_NORM TWO},
    {" nemotron_h ",
     MAMBA_2("mamba_num_heads*mamba_head_dim", "mamba_num_heads", "n_groups", "ssm_state_size", "conv_kernel",
             "use_bias|0", "use_bias|0", "use_conv_bias|1",
             "inner") "gates=2;qb=0;tied=0;l=moe_latent_size|h;expert=2*l*m;latent=has(moe_latent_size)?2*h*l:0;"
                      "kind=has(hybrid_override_pattern)?says(hybrid_override_pattern,i,M)+2*says(hybrid_override_"
                      "pattern,i,E)"
                      "+3*says(hybrid_override_pattern,i,-):says(layers_block_type,i,linear_attention)+says(layers_"
                      "block_type,i,mamba)+2*says(layers_block_type,i,moe)+3*says("
                      "layers_block_type,i,mlp);"
                      "L=has(hybrid_override_pattern)?num_hidden_layers:len(layers_block_type);sparse=kind=2;"
                      "layer=norm+(kind=1?ssm:kind=2?router+latent+forward(moe_shared_expert_intermediate_size):kind=3?"
                      "forward(f):attention);"},
    {" olmo ", "norm=0;"},
    {" olmo2 olmo3 ", QK_NORM_WIDE},
    {" olmoe flex_olmo ", QK_NORM_WIDE ALL_SPARSE},
    {" minimax_m2 ", QK_NORM_WIDE ALL_SPARSE},
    {" cohere cohere2 ", TIED "norms=norm;qknorm=(use_qk_norm|0)*(H*d+K*d);"},
    {" starcoder2 ", LAYER_NORM TIED TWO "qb=use_bias|1;fb=qb;"},
    {" stablelm ", LAYER_NORM "qb=use_qkv_bias|0;ob=0;norms=norm*(2-(use_parallel_residual|0));"
                              "qknorm=(qk_layernorm|0)*(H*d+K*d);"},
    {" persimmon ", LAYER_NORM TWO_BIAS "qknorm=(qk_layernorm|1)*4*d;"},
    {" glm ", "ob=0;"},
    {" glm4 ", "ob=0;" NORMS_4},
    {" glm4_moe ", "ob=0;qknorm=(use_qk_norm|0)*2*d;" SPARSE_BEHIND},
    {" solar_open ", "ob=0;sparse=1;" SHARED},
    {" ernie4_5_moe ",
     TIED "qb=use_bias|0;fb=qb;E=moe_num_experts;shared=forward(m*(moe_num_shared_experts|0));headbias=qb*V;"
          "sparse=((i+1)%(moe_layer_interval|1)=0)*!(i<(moe_layer_start_index|0))*!((moe_layer_end_index|L)<i);"
          "router=h*E+E;"},
    {" hunyuan_v1_dense ", QK_NORM},
    {" hunyuan_v1_moe ", QK_NORM ALL_SPARSE "shared=3*h*f;"},
    {" minimax ", ALL_SPARSE "mixer=says(layer_types,i,linear_attention)?h*3*H*d+H*d+2*H*d*h:attention;"},
    {" lfm2 ", TIED QK_NORM
     "u=block_multiple_of|256;g=block_ff_dim|intermediate_size;t=2*g/3;"
     "f=(block_auto_adjust_ff_dim|1)?(t+u-1)/u*u:g;tied=tie_word_embeddings|tie_embedding|tie;"
     "taps=conv_L_cache;cb=conv_bias|0;conv=4*h*h+h*taps+cb*5*h;"
     "attends=has(layer_types)?says(layer_types,i,full_attention):in(full_attn_idxs,i);mixer=attends?attention:conv;"},
    {" lfm2_moe ", TIED QK_NORM
     "tied=tie_word_embeddings|tie_embedding|tie;taps=conv_L_cache;cb=conv_bias|0;conv=4*h*h+h*taps+cb*5*h;"
     "mixer=says(layer_types,i,full_attention)?attention:conv;sparse=!(i<num_dense_layers);"},
    {" exaone4 ", QK_NORM},
    {" exaone_moe ", QK_NORM SPARSE_BEHIND},
    {" seed_oss ", "ob=attention_out_bias|0;"},
    {" dots1 ", QK_NORM SPARSE_BEHIND},
    {" arcee ", TWO},
    {" afmoe ", QK_NORM NORMS_4 SHARED "mixer=attention+h*H*d;sparse=!(i<(num_dense_layers|0));router=h*E+E;"},
    {" apertus ", TWO QK_NORM "feed=forward(f)+2;"},
    {" bitnet ", "layer=mixer+norms+feed+h+f;"},
    {" opt ", "f=ffn_dim;e=word_embed_proj_dim|h;qb=enable_bias|1;fb=qb;" LAYER_NORM TWO_BIAS TIED
              "embed=V*e+(max_position_embeddings+2)*h+(e=h?0:2*e*h);norm=(layer_norm_elementwise_affine|1)*2*h;"
              "head=((do_layer_norm_before|1)*!(_remove_final_layer_norm|0)?norm:0)+(tied?0:V*e);"},
    {" bloom ",
     LAYER_NORM TWO_BIAS TIED "L=n_layer|num_hidden_layers;H=n_head|num_attention_heads;f=4*h;embed=V*h+norm;"},
    {" mpt ", TIED TWO "h=d_model;H=n_heads;L=n_layers;f=4*h;"},
    {" llama4_text ",
     "f=intermediate_size_mlp;m=intermediate_size;shared=3*h*m;"
     "sparse=has(moe_layers)?in(moe_layers,i):(i+1)%(interleave_moe_layer_step|1)=0;"},
    {" jais2 ", LAYER_NORM TWO},
    {" gemma3n_text ", TIED
     "a=altup_num_inputs;p=hidden_size_per_layer_input;owns=i<L-num_kv_shared_layers;altup=h+a*a+a*a*a+a*h+h;"
     "attention=2*h*H*d+d+qb*(H*d+h)+(owns?2*h*K*d+d+qb*2*K*d:0);f=at(intermediate_size,i);laurel=2*h*laurel_rank+h;"
     "layer=attention+4*h+3*h*f+altup+laurel+2*h*p+h;embed=V*h+vocab_size_per_layer_input*L*p;"
     "head=h+(tied?0:V*h)+L*p*h+p+2*(a-1)*h*h;"},
    {" olmo_hybrid ", "mixer=linear?delta:attention;" QK_NORM_WIDE DELTA},
    {" diffllama ", "mixer=attention+4*d;"},
    {" jetmoe ", TIED "c=K*kv_channels;layer=2*c*h+2*h+2*E*h+2*h;experts=E*(2*h*c+3*h*f);"},
    {" hyperclovax ", "norms=norm*(2+2*(use_post_norm|0));"},
    {" nanochat ", TWO "norm=0;"},
    {" ctrl ", "f=dff;headbias=V;" GPT_KEYS LAYER_NORM TWO_BIAS TIED},
    {" xglm ", LAYER_NORM TWO_BIAS TIED "h=d_model;f=ffn_dim;L=num_layers;H=attention_heads;"},
    {" biogpt ", LAYER_NORM TWO_BIAS TIED "embed=(V+max_position_embeddings+2)*h;"},
    {" laguna ", QK_NORM
     "H=has(num_attention_heads_per_layer)?at(num_attention_heads_per_layer,i):num_attention_heads;"
     "router=h*E+E;shared=3*h*shared_expert_intermediate_size;mixer=attention+((gating|1)?h*H:h*H*d);" SPARSE_BEHIND},
    {" recurrent_gemma ", TIED "r=lru_width|h;f=intermediate_size/2;fb=1;ob=1;gate=H*(r/H)*(r/H)+r;"
                               "lru=2*(h*r+r)+r*h+h+r*conv1d_width+r+r+2*gate;"
                               "bt=i%len(block_types);mixer=says(block_types,bt,attention)?attention:lru;"},
    {" zamba ", TIED
     "n=mamba_expand*h;a=attention_hidden_size;c=H*attention_head_dim;hybrid=says(layers_block_type,i,hybrid);" MAMBA(
         "n", "mamba_d_state", "mamba_d_conv", "mamba_dt_rank", "mamba_proj_bias|0", "mamba_conv_bias|1",
         "0") "layer=ssm+h+(hybrid?h*h:0);other=(tied?1:sum(L,hybrid))*(a*c+2*a*K*attention_head_dim+c*h+3*h*f+a+h);"},
    {" zamba2 ",
     TIED MAMBA_2("mamba_expand*h", "n_mamba_heads", "mamba_ngroups", "mamba_d_state", "mamba_d_conv",
                  "add_bias_linear|0", "add_bias_linear|0", "1",
                  "inner") "a=attention_hidden_size;c=H*attention_head_dim;r=adapter_rank;hybrid=says(layers_block_"
                           "type,i,hybrid);"
                           "hybrids=sum(L,hybrid);adapter=h*r+2*f*r+(use_shared_attention_adapter?3*(a*r+c*r):0);"
                           "layer=ssm+h+(hybrid?h*h+adapter:0);block=a*c+2*a*K*attention_head_dim+c*h+3*h*f+a+h+(add_"
                           "bias_linear|0)*(2*f+h);"
                           "other=tied?num_mem_blocks*block:hybrids*(block+(hybrids-1)*adapter);"},
    {" t5 mt5 ", T5 "layer=alone?0:decoder;head=alone?0:norm+(tied?0:V*h);other=encoder+(alone?buckets:2*buckets);"},
    {" umt5 ", T5 "layer=alone?0:decoder+buckets;head=alone?0:norm+(tied?0:V*h);other=encoder+num_layers*buckets;"},
    {" bart ", LAYER_NORM TWO_BIAS TIED
     "h=d_model;H=decoder_attention_heads;L=decoder_layers;f=decoder_ffn_dim;p=(max_position_embeddings+2)*h+norm;"
     "layer=2*attention+3*norm+forward(f);embed=(tied?1:3)*V*h+p;head=tied?0:V*h;"
     "other=p+encoder_layers*(attention+2*norm+forward(encoder_ffn_dim));"},
    {" whisper ", LAYER_NORM TWO_BIAS TIED
     "h=d_model;H=decoder_attention_heads;L=decoder_layers;f=decoder_ffn_dim;attention=4*h*h+3*h;"
     "layer=2*attention+3*norm+forward(f);embed=(V+max_target_positions)*h;"
     "other=3*h*num_mel_bins+h+3*h*h+h+max_source_positions*h+norm+encoder_layers*(attention+2*norm+forward(encoder_"
     "ffn_dim));"},
    {" bert roberta xlm-roberta camembert ",
     LAYER_NORM TWO_BIAS "embed=(V+max_position_embeddings+(type_vocab_size|2))*h+norm;" POOLER},
    {" mpnet ",
     LAYER_NORM TWO_BIAS "embed=(V+max_position_embeddings)*h+norm;other=relative_attention_num_buckets*H;" POOLER},
    {" distilbert ", LAYER_NORM TWO_BIAS
     "h=dim;L=n_layers;H=n_heads;f=hidden_dim;embed=(V+max_position_embeddings)*h+norm;" ENCODER("0", "h*h+h+2*h+V")},
    {" electra ", LAYER_NORM TWO_BIAS
     "e=embedding_size;embed=(V+max_position_embeddings+(type_vocab_size|2))*e+2*e;head=0;other=e=h?0:e*h+h;"},
    {" albert ",
     LAYER_NORM TWO_BIAS "e=embedding_size;embed=(V+max_position_embeddings+(type_vocab_size|2))*e+2*e;layer=0;"
                         "other=e*h+h+num_hidden_groups*inner_group_num*(attention+2*norm+forward(f));" POOLER},
    {" nomic_bert ", LAYER_NORM "embed=(V+(type_vocab_size|2))*h+norm;" ENCODER("0", "odd(.architectures)")},
    {" modernbert ", "nb=norm_bias|0;norms=i=0?norm:2*norm;embed=V*h+norm;" ENCODER("norm", "norm+h*h+norm+V")},
    {" eurobert ", ENCODER("norm", "norm+V*h")},
    {" clip_text_model ", LAYER_NORM TWO_BIAS "embed=(V+max_position_embeddings)*h;head=norm;"},
};

/* ---- around language models ---- */

#define VISION                                                                                          \
  "tied=.tie_word_embeddings|tie_word_embeddings|tie;"                                                  \
  "vh=vision_config.hidden_size;vf=vision_config.intermediate_size;vl=vision_config.num_hidden_layers;" \
  "vp=vision_config.patch_size;vs=vision_config.image_size;vc=vision_config.num_channels|3;"            \
  "patch=vh*vc*vp*vp;patches=(vs/vp)*(vs/vp);vlayer=4*vh*vh+4*vh+2*vh*vf+vf+vh+4*vh;"
#define CLIP "(vh+patch+(patches+1)*vh+4*vh+vl*vlayer)"
#define SIGLIP "(patch+vh+patches*vh+vl*vlayer+2*vh)"
#define SIGLIP_HEAD "((vision_config.vision_use_head|1)?vh+4*vh*vh+4*vh+2*vh+2*vh*vf+vf+vh:0)"
#define PIXTRAL "(patch+vh+vl*(2*vh+4*vh*vh+3*vh*vf))"
/* Whichever of them the file has. A key that nobody states makes the count unknown. */
#define ANY_TOWER                                                               \
  "tower=says(vision_config.model_type,clip_vision_model)?" CLIP                \
  ":says(vision_config.model_type,siglip_vision_model)?" SIGLIP "+" SIGLIP_HEAD \
  ":says(vision_config.model_type,pixtral)?" PIXTRAL ":odd(vision_config.model_type);"
#define QWEN_VISION                                                                                                    \
  "tied=.tie_word_embeddings|tie_word_embeddings|tie;vh=vision_config.hidden_size;vf=vision_config.intermediate_size;" \
  "vl=vision_config.depth;vp=vision_config.patch_size;vc=vision_config.in_channels|3;"                                 \
  "vm=vision_config.spatial_merge_size|2;vw=vh*vm*vm;vo=vision_config.out_hidden_size;"                                \
  "patch=vh*vc*(vision_config.temporal_patch_size|2)*vp*vp;merge=vw*vw+vw+vw*vo+vo;"

static const family family_towers[] = {
    {" llava ", VISION ANY_TOWER "vb=multimodal_projector_bias|1;other=tower+vh*(has(vision_feature_layer)?len(vision_"
                                 "feature_layer):1)*h+h*h+2*vb*h;"},
    {" mistral3 ", VISION ANY_TOWER
     "vm=spatial_merge_size|2;vb=multimodal_projector_bias|0;other=tower+vh+vh*vh*vm*vm+vh*h+h*h+2*vb*h;"},
    {" gemma3 ", VISION "other=" SIGLIP "+" SIGLIP_HEAD "+vh*h+vh;"},
    {" paligemma ",
     VISION "pd=.projection_dim|vision_config.projection_dim|h;other=" SIGLIP "+" SIGLIP_HEAD "+vh*pd+pd;"},
    {" idefics3 smolvlm ", VISION "vm=scale_factor;other=" SIGLIP "+h*vh*vm*vm;"},
    {" llama4 ", "tied=text_config.tie_word_embeddings|0;" VISION
                 "vo=vision_config.projector_output_dim;vi=vision_config.projector_input_dim;"
                 "other=vh+(patches+1)*vh+patch+4*vh+vl*vlayer+vi*vf+vo*vo+h*vision_config.vision_output_dim;"},
    {" qwen2_vl ", "vo=vision_config.hidden_size;vh=vision_config.embed_dim;vf=vh*vision_config.mlp_ratio;" QWEN_VISION
                   "other=patch+vl*(4*vh+4*vh*vh+4*vh+2*vh*vf+vf+vh)+2*vh+merge;"},
    {" qwen2_5_vl ", QWEN_VISION "other=patch+vl*(2*vh+4*vh*vh+4*vh+3*vh*vf+2*vf+vh)+vh+merge;"},
    {" qwen3_vl qwen3_vl_moe ", QWEN_VISION
     "other=patch+vh+vision_config.num_position_embeddings*vh+vl*(4*vh+4*vh*vh+4*vh+2*vh*vf+vf+vh)+2*vh+merge"
     "+len(vision_config.deepstack_visual_indexes)*(2*vw+merge);"},
    {" qwen3_5 qwen3_5_moe ", QWEN_VISION
     "other=patch+vh+vision_config.num_position_embeddings*vh+vl*(4*vh+4*vh*vh+4*vh+2*vh*vf+vf+vh)+2*vh+merge;"},
};

const char *gm__family_general(void) { return family_general; }

static bool family_has(const family *row, const char *type) {
  const size_t length = strlen(type);
  for (const char *at = row->types; (at = strstr(at, type)); at++) {
    if (at[-1] == ' ' && at[length] == ' ') return true;
  }
  return false;
}

static const char *family_find(const family *rows, size_t count, const char *type) {
  for (size_t i = 0; type[0] && !strchr(type, ' ') && i < count; i++) {
    if (family_has(&rows[i], type)) return rows[i].rules;
  }
  return NULL;
}

const char *gm__family_rules(const char *type) {
  return family_find(families, sizeof families / sizeof *families, type);
}

const char *gm__family_around(const char *type) {
  return family_find(family_towers, sizeof family_towers / sizeof *family_towers, type);
}
